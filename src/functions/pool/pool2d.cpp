#include <declivity/ops/pool2d.hpp>

#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/gather.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "autograd/graph.hpp"
#include "autograd/rule_call.hpp"
#include "ops/engine/lazy_array.hpp"
#include "pool_windows.hpp"

namespace declivity {
namespace {

/// Elements of the planes of x at the indices of the maxima.
Tensor gather_maxima(const Tensor& x, const ops::LazyArray& indices, const ops::Pool2dParameters& parameters);

/// Gradient for an x of this shape, from that of the maxima.
Tensor max_gradient(const Tensor& g, const ops::LazyArray& indices, const Shape& x_shape,
                    const ops::Pool2dParameters& parameters) {
    return attach_backward(
        "max_pool2d_gradient", {g}, ops::max_pool2d_backward(g.dense_view(), indices.view(), x_shape, parameters),
        [indices, parameters](const GradientContext& context) {
            return std::vector{gather_maxima(context.gradient(), indices, parameters)};
        },
        RuleKind::differentiable);
}

Tensor gather_maxima(const Tensor& x, const ops::LazyArray& indices, const ops::Pool2dParameters& parameters) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, indices.shape());
    const auto planes = [](const ops::View& view) {
        return ops::reshaped(view, {view.shape[0] * view.shape[1], view.shape[2] * view.shape[3]});
    };
    ops::gather("max_pool2d_gradient", planes(in), planes(indices.view()), planes(out));
    return attach_backward(
        "max_pool2d_gradient", {x}, out,
        [indices, x_shape = in.shape, parameters](const GradientContext& context) {
            return std::vector{max_gradient(context.gradient(), indices, x_shape, parameters)};
        },
        RuleKind::differentiable);
}

Tensor averages(const Tensor& x, const ops::Pool2dParameters& parameters);

/// Gradient for an x of this shape, from that of the averages.
Tensor average_gradient(const Tensor& g, const Shape& x_shape, const ops::Pool2dParameters& parameters) {
    return attach_backward(
        "avg_pool2d_gradient", {g}, ops::avg_pool2d_backward(g.dense_view(), x_shape, parameters),
        [parameters](const GradientContext& context) { return std::vector{averages(context.gradient(), parameters)}; },
        RuleKind::differentiable);
}

Tensor averages(const Tensor& x, const ops::Pool2dParameters& parameters) {
    return attach_backward(
        "avg_pool2d", {x}, ops::avg_pool2d(x.dense_view(), parameters),
        [parameters, x_shape = x.shape()](const GradientContext& context) {
            return std::vector{average_gradient(context.gradient(), x_shape, parameters)};
        },
        RuleKind::differentiable);
}

/// Reduces the elements of each window by `combine`, one position within the windows after the other. @param edge
/// padding value
template <class Combine>
Tensor over_windows(const Tensor& x, const Shape& out, const ops::Pool2dParameters& parameters, double edge,
                    Combine combine) {
    Tensor padded = x;
    for (const int axis : {2, 3}) {
        const std::int64_t padding = parameters.padding[static_cast<std::size_t>(axis - 2)];
        if (padding == 0) continue;
        Shape shape = padded.shape();
        shape[axis] = padding;
        const Tensor side = full(shape, edge, {x.dtype(), x.device()});
        padded = concat({side, padded, side}, axis);
    }
    const auto part = [&](const Tensor& values, int axis, std::int64_t first) {
        const std::int64_t stride = parameters.step()[static_cast<std::size_t>(axis - 2)];
        return slice(values, axis, first, first + (out[axis] - 1) * stride + 1, stride);
    };
    Tensor combined;
    for (std::int64_t i = 0; i < parameters.kernel_size[0]; ++i)
        for (std::int64_t j = 0; j < parameters.kernel_size[1]; ++j) {
            const Tensor element = part(part(padded, 2, i), 3, j);
            combined = combined.defined() ? combine(combined, element) : element;
        }
    return combined;
}

Tensor decomposed_max(const Tensor& x, const Shape& out, const ops::Pool2dParameters& parameters) {
    return over_windows(x, out, parameters, -std::numeric_limits<double>::infinity(),
                        [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
}

Tensor decomposed_average(const Tensor& x, const Shape& out, const ops::Pool2dParameters& parameters) {
    const auto total = [&](const Tensor& values) {
        return over_windows(values, out, parameters, 0, [](const Tensor& a, const Tensor& b) { return a + b; });
    };
    if (parameters.count_include_pad)
        return total(x) * (1.0 / static_cast<double>(parameters.kernel_size[0] * parameters.kernel_size[1]));
    return total(x) / total(ones({1, 1, x.size(2), x.size(3)}, {x.dtype(), x.device()}));
}

Tensor decomposed(Tensor (*function)(const Tensor&, const Shape&, const ops::Pool2dParameters&), const Tensor& x,
                  const Shape& out, const ops::Pool2dParameters& parameters) {
    return detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& in) { return std::vector{function(in[0], out, parameters)}; }, {x})[0];
}

}  // namespace

MaxPooled detail::max_pool_planes(const Tensor& x, const ops::Pool2dParameters& parameters) {
    const Shape shape = ops::pool2d_shape("max_pool2d", x.shape(), parameters);
    const auto forward = ops::max_pool2d(x.dense_view(), parameters);
    if (detail::by_decomposition()) return {decomposed(decomposed_max, x, shape, parameters), Tensor(forward.indices)};
    if (!any_requires_grad({x})) return {Tensor(forward.out), Tensor(forward.indices)};
    // Differentiates through the activation for the maxima alone: they are fewer than the elements.
    const auto& producer = state_of(x)->node;
    const Saved maxima = producer && producer->activation ? Saved::result(forward.out) : Saved();
    const Tensor values = attach_backward(
        "max_pool2d", {x}, forward.out,
        [indices = forward.indices, parameters, x_shape = x.shape(), maxima](const GradientContext& context) {
            Tensor g = context.release_gradient();
            if (maxima.is_unmodified() && !grad_enabled())
                if (const auto activation_gradient =
                        detail::through_activation(context, 0, g.value(), maxima.get("max_pool2d").view()))
                    g = Tensor(ops::make_lazy(activation_gradient, g.device()));
            return std::vector{max_gradient(g, indices, x_shape, parameters)};
        },
        RuleKind::differentiable);
    return {values, Tensor(forward.indices)};
}

Tensor detail::avg_pool_planes(const Tensor& x, const ops::Pool2dParameters& parameters) {
    const Shape shape = ops::pool2d_shape("avg_pool2d", x.shape(), parameters);
    return detail::by_decomposition() ? decomposed(decomposed_average, x, shape, parameters) : averages(x, parameters);
}

Tensor global_avg_pool2d(const Tensor& x) {
    const FunctionCall call("global_avg_pool2d", {{"x", x}});
    call.require_defined({"x"});
    ops::require_rank("global_avg_pool2d", "x", x.shape(), 4, "N, C, H, W");
    ops::require_real("global_avg_pool2d", "x", x.dtype());
    return call.result(mean(x, {2, 3}, true));
}

}  // namespace declivity
