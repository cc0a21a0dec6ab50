#include <declivity/ops/pool2d.hpp>

#include <declivity/ops/gather.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "tensor_state.hpp"

namespace declivity {
namespace {

ops::Pool2dParameters parameters_of(const Pool2dOptions& options) {
    ops::Pool2dParameters out{.window = options.window,
                              .stride = options.stride,
                              .padding = options.padding,
                              .count_padding = options.count_padding};
    for (std::size_t i = 0; i < 2; ++i)
        if (out.stride[i] == 0) out.stride[i] = out.window[i];
    return out;
}

ops::View make_like(const ops::View& like, const Shape& shape, DType dtype) {
    return ops::View::make(like.device(), dtype, shape);
}

/// Elements of the planes of x at the places where a window's largest stood.
Tensor taken(const Tensor& x, const ops::View& winners, const ops::Pool2dParameters& parameters);

/// The gradient for x of this shape, from that of the maxima.
Tensor max_gradient(const Tensor& g, const ops::View& winners, const Shape& from,
                    const ops::Pool2dParameters& parameters) {
    const ops::View in = g.dense_view(), out = make_like(in, from, in.dtype);
    ops::max_pool2d_backward(in, winners, out, parameters);
    return differentiable(
        "max_pool2d_gradient", {g}, out,
        [winners, parameters](const GradientContext& context) {
            return std::vector{taken(context.gradient(), winners, parameters)};
        },
        RuleKind::composed);
}

Tensor taken(const Tensor& x, const ops::View& winners, const ops::Pool2dParameters& parameters) {
    const ops::View in = x.dense_view(), out = make_like(in, winners.shape, in.dtype);
    const auto planes = [](const ops::View& view) {
        return ops::reshaped(view, {view.shape[0] * view.shape[1], view.shape[2] * view.shape[3]});
    };
    ops::gather("max_pool2d_gradient", planes(in), planes(winners), planes(out));
    return differentiable(
        "max_pool2d_gradient", {x}, out,
        [winners, from = in.shape, parameters](const GradientContext& context) {
            return std::vector{max_gradient(context.gradient(), winners, from, parameters)};
        },
        RuleKind::composed);
}

Tensor averages(const Tensor& x, const ops::Pool2dParameters& parameters);

/// The gradient for x of this shape, from that of the averages.
Tensor average_gradient(const Tensor& g, const Shape& from, const ops::Pool2dParameters& parameters) {
    const ops::View in = g.dense_view(), out = make_like(in, from, in.dtype);
    ops::avg_pool2d_backward(in, out, parameters);
    return differentiable(
        "avg_pool2d_gradient", {g}, out,
        [parameters](const GradientContext& context) { return std::vector{averages(context.gradient(), parameters)}; },
        RuleKind::composed);
}

Tensor averages(const Tensor& x, const ops::Pool2dParameters& parameters) {
    const ops::View in = x.dense_view();
    const ops::View out = make_like(in, ops::pool2d_shape("avg_pool2d", in.shape, parameters), in.dtype);
    ops::avg_pool2d_forward(in, out, parameters);
    return differentiable(
        "avg_pool2d", {x}, out,
        [parameters, from = in.shape](const GradientContext& context) {
            return std::vector{average_gradient(context.gradient(), from, parameters)};
        },
        RuleKind::composed);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
    const Span span("max_pool2d");
    detail::require_defined("max_pool2d", x);
    const auto parameters = parameters_of(options);
    const ops::View in = x.dense_view();
    const Shape shape = ops::pool2d_shape("max_pool2d", in.shape, parameters);
    const ops::View out = make_like(in, shape, in.dtype), winners = make_like(in, shape, DType::i32);
    ops::max_pool2d_forward(in, out, winners, parameters);
    // The gradient for an activation's maxima goes on to what went into the activation: there are fewer of them than
    // elements.
    const auto& made_by = x.state()->node;
    const Saved maxima = made_by && made_by->activation ? Saved::result(out) : Saved();
    return differentiable(
        "max_pool2d", {x}, out,
        [winners, parameters, from = in.shape, maxima](const GradientContext& context) {
            Tensor g = context.take_gradient();
            if (maxima.intact() && !grad_enabled())
                if (const auto before = context.through_activation(0, g.value(), maxima.get("max_pool2d").view()))
                    g = Tensor(ops::Value(before, g.device()));
            return std::vector{max_gradient(g, winners, from, parameters)};
        },
        RuleKind::composed);
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
    const Span span("avg_pool2d");
    detail::require_defined("avg_pool2d", x);
    return averages(x, parameters_of(options));
}

Tensor global_avg_pool2d(const Tensor& x) {
    detail::require_defined("global_avg_pool2d", x);
    ops::require_rank("global_avg_pool2d", "x", x.shape(), 4, "N, C, H, W");
    if (!is_floating(x.dtype()))
        throw TypeError(fmt::format("global_avg_pool2d: wants f32, f64, f16 or bf16, got {}", name_of(x.dtype())));
    return mean(x, {2, 3}, true);
}

}  // namespace declivity
