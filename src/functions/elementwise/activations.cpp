// Activations composed of other functions.
#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::recomputed_in_f32;

namespace {

/// Splits an axis into two equal parts.
struct GluParts {
    Tensor first, second;
};
void require_even_axis(std::string_view function, const Tensor& x, std::int64_t axis) {
    ops::require_real(function, "x", x.dtype());
    const int along = normalize_axis(function, axis, x.rank());
    if (x.shape()[along] % 2 != 0)
        throw ShapeError(
            fmt::format("{}: expected an axis of even size, got axis {} of {}", function, along, x.shape().str()));
}

GluParts split_axis(std::string_view function, const Tensor& x, std::int64_t axis) {
    const int along = normalize_axis(function, axis, x.rank());
    const std::int64_t size = x.shape()[along];
    return {slice(x, along, 0, size / 2), slice(x, along, size / 2, size)};
}

}  // namespace

Tensor selu(const Tensor& x) {
    const FunctionCall call("selu", {{"x", x}});
    call.require_defined({"x"});
    ops::require_real("selu", "x", x.dtype());
    constexpr double kAlpha = 1.6732632423543772848, kScale = 1.0507009873554804934;
    const auto scaled = [](const Tensor& upcast) { return elu(upcast, kAlpha) * kScale; };
    return call.result(detail::in_f32(x.dtype(), scaled, x));
}

Tensor celu(const Tensor& x, double alpha) {
    const FunctionCall call("celu", {{"x", x}}, {{"alpha", alpha}});
    call.require_defined({"x"});
    ops::require_real("celu", "x", x.dtype());
    if (alpha == 0) throw ValueError("celu: expected a non-zero alpha, got 0");
    // elu has PyTorch's gradients at 0, where minimum(x, 0) would give half.
    return call.result(recomputed_in_f32("celu", x, [alpha](const Tensor& upcast) {
        const Tensor negative = upcast <= 0, scaled = where(negative, upcast, 0) / alpha;
        return where(negative, alpha * (alpha > 0 ? elu(scaled) : expm1(scaled)), upcast);
    }));
}

Tensor tanhshrink(const Tensor& x) {
    const FunctionCall call("tanhshrink", {{"x", x}});
    call.require_defined({"x"});
    return call.result(recomputed_in_f32("tanhshrink", x, [](const Tensor& upcast) { return upcast - tanh(upcast); }));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
    const FunctionCall call("prelu", {{"x", x}, {"weight", weight}});
    call.require_defined({"x", "weight"});
    ops::require_real("prelu", "x", x.dtype());
    const std::int64_t channels = x.rank() < 2 ? 1 : x.shape()[1];
    if (weight.dtype() != x.dtype())
        throw TypeError(fmt::format("prelu: expected a weight of x's type, {}, got {}", name_of(x.dtype()),
                                    name_of(weight.dtype())));
    if (weight.rank() > 1 || (weight.numel() != 1 && weight.numel() != channels))
        throw ShapeError(fmt::format("prelu: expected a weight of one number, or of {} (axis 1 of x, {}), got {}",
                                     channels, x.shape().str(), weight.shape().str()));
    Shape shape;
    if (weight.numel() != 1 || x.rank() >= 2)
        for (int axis = 0; axis < x.rank(); ++axis) shape.push_back(axis == 1 ? weight.numel() : 1);
    const auto sloped = [&](const Tensor& in, const Tensor& slopes) {
        const Tensor slope = reshape(slopes, shape);
        // At 0 the gradient for x is the slope, and that for the slope is 0.
        // The branch that is not selected is finite: otherwise the gradient of the slope would be 0 times infinity.
        return where(in > 0, in, where(in == 0, slope.detach(), slope) * where(in > 0, 0, in));
    };
    return call.result(detail::in_f32(x.dtype(), sloped, x, weight));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training, const std::optional<Generator>& generator) {
    const FunctionCall call("rrelu", {{"x", x}}, {{"lower", lower}, {"upper", upper}, {"training", training}});
    call.require_defined({"x"});
    ops::require_real("rrelu", "x", x.dtype());
    if (!(lower <= upper)) throw ValueError(fmt::format("rrelu: expected lower <= upper, got {} and {}", lower, upper));
    if (!training) return call.result(leaky_relu(x, (lower + upper) / 2));
    const Tensor slopes = uniform(x.shape(), lower, upper, {compute_type(x.dtype()), x.device()}, generator);
    return call.result(detail::in_f32(
        x.dtype(), [&](const Tensor& upcast) { return where(upcast >= 0, upcast, slopes * upcast); }, x));
}

Tensor glu(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("glu", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    require_even_axis("glu", x, axis);
    return call.result(recomputed_in_f32("glu", x, [axis](const Tensor& upcast) {
        const auto [a, b] = split_axis("glu", upcast, axis);
        return a * sigmoid(b);
    }));
}

Tensor swiglu(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("swiglu", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    require_even_axis("swiglu", x, axis);
    return call.result(recomputed_in_f32("swiglu", x, [axis](const Tensor& upcast) {
        const auto [a, b] = split_axis("swiglu", upcast, axis);
        return silu(a) * b;
    }));
}

Tensor geglu(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("geglu", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    require_even_axis("geglu", x, axis);
    return call.result(recomputed_in_f32("geglu", x, [axis](const Tensor& upcast) {
        const auto [a, b] = split_axis("geglu", upcast, axis);
        return gelu(a) * b;
    }));
}

}  // namespace declivity
