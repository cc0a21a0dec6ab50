// Normalisation of rows: layer_norm and rms_norm.
#include <declivity/ops/layer_norm.hpp>

#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "ops/engine/lazy_array.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

using ops::RowNorm;

/// @param inner the first of the axes that are normalised together; weight and bias have their shape, or are undefined
Tensor decomposed(RowNorm kind, const Tensor& x, int inner, const Tensor& weight, const Tensor& bias, double eps) {
    Dims axes;
    for (int axis = inner; axis < x.rank(); ++axis) axes.push_back(axis);
    const Tensor centred = kind == RowNorm::rms ? x : x - mean(x, axes, true);
    Tensor y = centred * pow(mean(square(centred), axes, true) + eps, -0.5);
    if (weight.defined()) y = y * weight;
    return bias.defined() ? y + bias : y;
}

Tensor normalised(RowNorm kind, const char* name, Tensor x, int inner, const Tensor& weight, const Tensor& bias,
                  double eps) {
    const auto decomposition = [kind, inner, eps](const std::vector<Tensor>& in) {
        return std::vector{decomposed(kind, in[0], inner, in[1], in[2], eps)};
    };
    if (detail::by_decomposition()) return detail::decomposed_in_f32(decomposition, {x, weight, bias})[0];
    const ops::View weights = detail::dense_or_none(weight), biases = detail::dense_or_none(bias);
    if (!any_requires_grad({x, weight, bias}))
        return Tensor(ops::layer_norm(kind, detail::release_value(std::move(x)), inner, weights, biases, eps).out);
    const auto forward = ops::layer_norm(kind, x.value(), inner, weights, biases, eps);
    return attach_backward(
        name, {x, weight, bias}, {forward.out},
        [kind, name, inner, x = Saved(x), weight = Saved(weight), mean = forward.mean,
         rstd = forward.rstd](const GradientContext& context) {
            const ops::View g = context.release_gradient().dense_view(), in = x.get(name).dense_view();
            std::vector<Tensor> gradients(3);
            if (context.needs(0))
                gradients[0] = Tensor(ops::layer_norm_input_gradient(kind, in, detail::dense_or_none(weight.get(name)),
                                                                     mean.view(), rstd.view(), g));
            if (context.needs(1) || context.needs(2)) {
                Shape last;
                for (int axis = inner; axis < in.rank(); ++axis) last.push_back(in.shape[axis]);
                const auto shaped = [&](const ops::LazyArray& gradient) {
                    return Tensor(last.rank() == 1 ? gradient : ops::reshaped(gradient, last));
                };
                const auto [grad_weight, grad_bias] =
                    ops::layer_norm_weight_gradients(in, last.numel(), mean.view(), rstd.view(), g);
                if (context.needs(1)) gradients[1] = shaped(grad_weight);
                if (context.needs(2)) gradients[2] = shaped(grad_bias);
            }
            return gradients;
        },
        decomposition)[0];
}

Tensor row_norm(RowNorm kind, const char* name, Tensor x, const Shape& normalized, const Tensor& weight,
                const Tensor& bias, double eps) {
    ops::require_real(name, "x", x.dtype());
    if (!(eps >= 0)) throw ValueError(fmt::format("{}: expected eps of at least 0, got {}", name, eps));
    if (normalized.rank() < 1)
        throw ShapeError(fmt::format("{}: expected at least one axis in the normalised shape, got ()", name));
    const int first = x.rank() - normalized.rank();
    bool fits = first >= 0;
    for (int axis = 0; fits && axis < normalized.rank(); ++axis) fits = x.shape()[first + axis] == normalized[axis];
    if (!fits)
        throw ShapeError(fmt::format("{}: expected x whose last axes are the normalised shape {}, got x of shape {}",
                                     name, normalized.str(), x.shape().str()));
    for (const auto& [what, tensor] : {std::pair{"weight", &weight}, std::pair{"bias", &bias}}) {
        if (!tensor->defined()) continue;
        ops::require_shape(name, what, tensor->shape(), normalized);
        ops::require_alike(name, "x", x.dtype(), x.device(), what, tensor->dtype(), tensor->device());
    }
    return normalised(kind, name, std::move(x), first, weight, bias, eps);
}

}  // namespace

Tensor layer_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
    const FunctionCall call("layer_norm", {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"normalized_shape", normalized_shape}, {"eps", eps}});
    call.require_defined({"x"});
    return call.result(row_norm(RowNorm::layer, "layer_norm", std::move(x), normalized_shape, weight, bias, eps));
}

Tensor rms_norm(Tensor x, const Shape& normalized_shape, const Tensor& weight, double eps) {
    const FunctionCall call("rms_norm", {{"x", x}, {"weight", weight}},
                            {{"normalized_shape", normalized_shape}, {"eps", eps}});
    call.require_defined({"x"});
    return call.result(row_norm(RowNorm::rms, "rms_norm", std::move(x), normalized_shape, weight, {}, eps));
}

}  // namespace declivity
