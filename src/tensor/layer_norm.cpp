// Normalisation of rows: layer_norm and rms_norm.
#include <declivity/ops/layer_norm.hpp>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "composition.hpp"
#include "halves.hpp"
#include "tensor_state.hpp"

namespace declivity {
namespace {

using ops::RowNorm;

/// x (rows, n), weight and bias (n) or undefined.
Tensor composed(RowNorm kind, const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
    const Tensor centred = kind == RowNorm::rms ? x : x - mean(x, {1}, true);
    Tensor y = centred * pow(mean(square(centred), {1}, true) + epsilon, -0.5);
    if (weight.defined()) y = y * weight;
    return bias.defined() ? y + bias : y;
}

ops::View dense_or_none(const Tensor& tensor) { return tensor.defined() ? tensor.dense_view() : ops::View(); }

Tensor normalised(RowNorm kind, const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
    if (detail::by_composition()) return composed(kind, x, weight, bias, epsilon);
    const auto made = ops::layer_norm(kind, x.dense_view(), dense_or_none(weight), dense_or_none(bias), epsilon);
    const char* const name = kind == RowNorm::rms ? "rms_norm" : "layer_norm";
    if (!recorded({x, weight, bias})) return Tensor(made.out);
    return differentiable(
        name, {x, weight, bias}, {made.out},
        [kind, name, x = Saved(x), weight = Saved(weight), mean = made.mean,
         rstd = made.rstd](const GradientContext& context) {
            const ops::View g = context.take_gradient().dense_view(), in = x.get(name).dense_view();
            std::vector<Tensor> gradients(3);
            if (context.needs(0))
                gradients[0] = Tensor(ops::layer_norm_input_gradient(kind, in, dense_or_none(weight.get(name)),
                                                                     mean.view(), rstd.view(), g));
            if (context.needs(1) || context.needs(2)) {
                const auto [of_weight, of_bias] = ops::layer_norm_weight_gradients(in, mean.view(), rstd.view(), g);
                if (context.needs(1)) gradients[1] = Tensor(of_weight);
                if (context.needs(2)) gradients[2] = Tensor(of_bias);
            }
            return gradients;
        },
        [kind, epsilon](const std::vector<Tensor>& in) {
            return std::vector{composed(kind, in[0], in[1], in[2], epsilon)};
        })[0];
}

Tensor row_norm(RowNorm kind, const char* name, const Tensor& x, const Shape& normalized, const Tensor& weight,
                const Tensor& bias, double epsilon) {
    detail::require_defined(name, x);
    if (!is_floating(x.dtype()))
        throw TypeError(fmt::format("{}: wants f32, f64, f16 or bf16 as x, got {} (convert with .to(DType::f32))", name,
                                    declivity::name_of(x.dtype())));
    if (!(epsilon >= 0)) throw ValueError(fmt::format("{}: wants an epsilon of at least 0, got {}", name, epsilon));
    const int first = x.rank() - normalized.rank();
    bool fits = normalized.rank() >= 1 && first >= 0;
    for (int axis = 0; fits && axis < normalized.rank(); ++axis) fits = x.shape()[first + axis] == normalized[axis];
    if (!fits)
        throw ShapeError(fmt::format("{}: wants x whose last axes are the normalised shape {}, got x {}", name,
                                     normalized.str(), x.shape().str()));
    for (const auto& [what, tensor] : {std::pair{"weight", &weight}, std::pair{"bias", &bias}}) {
        if (!tensor->defined()) continue;
        ops::require_shape(name, what, tensor->shape(), normalized);
        ops::require_alike(name, "x", x.dtype(), x.device(), what, tensor->dtype(), tensor->device());
    }
    if (is_half(x.dtype()))
        return row_norm(kind, name, detail::widened(x), normalized, detail::widened(weight), detail::widened(bias),
                        epsilon)
            .to(x.dtype());
    const Span span(name);
    const std::int64_t n = normalized.numel();
    if (x.rank() == 2 && normalized.rank() == 1) return normalised(kind, x, weight, bias, epsilon);
    const auto flat = [n](const Tensor& tensor) { return tensor.defined() ? reshape(tensor, {n}) : tensor; };
    std::int64_t rows = 1;
    for (int axis = 0; axis < first; ++axis) rows *= x.shape()[axis];
    return reshape(normalised(kind, reshape(x, {rows, n}), flat(weight), flat(bias), epsilon), x.shape());
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double epsilon) {
    return row_norm(RowNorm::layer, "layer_norm", x, normalized_shape, weight, bias, epsilon);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double epsilon) {
    return row_norm(RowNorm::rms, "rms_norm", x, normalized_shape, weight, {}, epsilon);
}

}  // namespace declivity
