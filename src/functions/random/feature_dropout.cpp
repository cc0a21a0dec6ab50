// Dropout of whole channels, and alpha dropout for networks with selu.
#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

using MaybeGenerator = std::optional<Generator>;

void check(const char* function, const Tensor& x, double p, const MaybeGenerator& generator) {
    if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("{}: expected p in [0, 1], got {}", function, p));
    if (!is_floating(x.dtype()))
        throw TypeError(fmt::format("{}: expected f32, f64, f16 or bf16, got {}", function, name_of(x.dtype())));
    if (generator && !(generator->device() == x.device()))
        throw DeviceError(fmt::format("{}: expected a generator on x's device, '{}', got one on '{}'", function,
                                      x.device().name(), generator->device().name()));
}

/// Bernoulli mask over the first `leading_axes` axes: 1 for each kept channel and 0 otherwise.
Tensor channel_mask(const Tensor& x, int leading_axes, double p, const MaybeGenerator& generator) {
    Shape shape = x.shape();
    for (int axis = leading_axes; axis < x.rank(); ++axis) shape[axis] = 1;
    return bernoulli(shape, 1 - p, {x.dtype(), x.device()}, generator);
}

Tensor apply_feature_dropout(const char* function, const Tensor& x, double p, const MaybeGenerator& generator,
                             int unbatched, int rank) {
    const FunctionCall call(function, {{"x", x}}, {{"p", p}});
    call.require_defined({"x"});
    check(function, x, p, generator);
    if (x.rank() != rank && x.rank() != rank - 1)
        throw ShapeError(
            fmt::format("{}: expected x of {} or {} axes, got shape {}", function, rank - 1, rank, x.shape().str()));
    if (p == 0) return call.result(x);
    const Tensor mask = channel_mask(x, x.rank() == rank ? 2 : unbatched, p, generator);
    return call.result(x * mask * (p < 1 ? 1 / (1 - p) : 0));
}

/// @param leading_axes number of leading axes whose elements are dropped or kept as a whole
Tensor apply_alpha_dropout(const char* function, const Tensor& x, double p, const MaybeGenerator& generator,
                           int leading_axes) {
    const FunctionCall call(function, {{"x", x}}, {{"p", p}});
    call.require_defined({"x"});
    check(function, x, p, generator);
    if (leading_axes > x.rank())
        throw ShapeError(
            fmt::format("{}: expected x of 2 axes (N, C) or more, got shape {}", function, x.shape().str()));
    if (p == 0) return call.result(x);
    if (p == 1) return call.result(x * 0.0);
    constexpr double low = -1.7580993408473766;  // the limit of selu, -scale * alpha
    const double a = 1 / std::sqrt((1 - p) * (1 + p * low * low)), b = -a * low * p;
    const Tensor mask = channel_mask(x, leading_axes, p, generator);
    return call.result((x * mask + (1.0 - mask) * low) * a + b);
}

}  // namespace

Tensor dropout1d(const Tensor& x, double p, const MaybeGenerator& generator) {
    return apply_feature_dropout("dropout1d", x, p, generator, 1, 3);
}
Tensor dropout2d(const Tensor& x, double p, const MaybeGenerator& generator) {
    return apply_feature_dropout("dropout2d", x, p, generator, 2, 4);
}
Tensor dropout3d(const Tensor& x, double p, const MaybeGenerator& generator) {
    return apply_feature_dropout("dropout3d", x, p, generator, 1, 5);
}
Tensor alpha_dropout(const Tensor& x, double p, const MaybeGenerator& generator) {
    return apply_alpha_dropout("alpha_dropout", x, p, generator, x.defined() ? x.rank() : 0);
}
Tensor feature_alpha_dropout(const Tensor& x, double p, const MaybeGenerator& generator) {
    return apply_alpha_dropout("feature_alpha_dropout", x, p, generator, 2);
}

}  // namespace declivity
