#include <declivity/ops/fft.hpp>

#include <cmath>
#include <numbers>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/complex.hpp>
#include <declivity/functions/fft.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>

#include "autograd/decomposition.hpp"
#include "complex.hpp"

namespace declivity::fft {
namespace {

using Tensors = std::vector<Tensor>;

/// Transform by multiplication with the DFT matrix.
Tensor decomposed(const Tensor& x, int axis, bool conjugate, double scale) {
    const std::int64_t n = x.size(axis);
    const Tensor k = arange(0, n, 1, {DType::i64, x.device()});
    const Tensor angle =
        remainder(reshape(k, {n, 1}) * k, n).to(x.dtype()) * (2 * std::numbers::pi / static_cast<double>(n));
    const Tensor c = cos(angle) * scale, s = sin(angle) * (conjugate ? -scale : scale);
    const Tensor re = movedim(select(x, -1, 0), axis, -1), im = movedim(select(x, -1, 1), axis, -1);
    // A row as a matrix: a vector times a matrix has no row axis.
    const auto times = [](const Tensor& rows, const Tensor& matrix) {
        return squeeze(matmul(unsqueeze(rows, -2), matrix), {-2});
    };
    return complex(movedim(times(re, c) + times(im, s), -1, axis), movedim(times(im, c) - times(re, s), -1, axis));
}

/// Complex-to-complex transform.
Tensor transformed(const char* name, const Tensor& x, int axis, bool conjugate, double scale) {
    if (detail::by_decomposition())
        return detail::decomposed_in_f32(
            [&](const Tensors& in) { return Tensors{decomposed(in[0], axis, conjugate, scale)}; }, {x})[0];
    return attach_backward(
        name, {x}, ops::fft(name, x.view(), axis, conjugate, scale),
        [name, axis, conjugate, scale](const GradientContext& context) {
            return Tensors{transformed(name, context.gradient(), axis, !conjugate, scale)};
        },
        RuleKind::differentiable);
}

/// Completes a half spectrum by its conjugates to n elements.
Tensor hermitian(const Tensor& x, int axis, std::int64_t n) {
    const std::int64_t h = x.size(axis);
    const Tensor others = flip(slice(x, axis, 1, n - h + 1), {axis});
    return concat({x, complex(select(others, -1, 0), -select(others, -1, 1))}, axis);
}

Tensor to_real(const char* name, const Tensor& x, double scale);

/// Real-to-complex transform along the last axis, of even length: the first half of the spectrum.
Tensor to_half(const char* name, const Tensor& x, double scale) {
    const std::int64_t h = x.size(-1) / 2;
    if (detail::by_decomposition()) {
        const int axis = x.rank() - 1;
        return slice(transformed(name, complex(x, zeros_like(x)), axis, false, scale), axis, 0, h + 1);
    }
    return attach_backward(
        name, {x}, ops::fft_real(name, x.dense_view(), scale),
        [name, h, scale](const GradientContext& context) {
            const Tensor& g = context.gradient();
            const Tensor k = arange(0, h + 1, 1, {DType::i32, g.device()});
            const Tensor weights = where((k == 0) | (k == h), full({}, 1, {g.dtype(), g.device()}), 0.5);
            return Tensors{to_real(name, g * reshape(weights, {h + 1, 1}), scale)};
        },
        RuleKind::differentiable);
}

/// Inverse of to_half, without normalisation.
Tensor to_real(const char* name, const Tensor& x, double scale) {
    const std::int64_t h = x.size(-2) - 1;
    if (detail::by_decomposition()) {
        const int axis = x.rank() - 2;
        return select(transformed(name, hermitian(x, axis, 2 * h), axis, true, scale), -1, 0);
    }
    return attach_backward(
        name, {x}, ops::fft_real_inverse(name, x.dense_view(), scale),
        [name, h, scale](const GradientContext& context) {
            const Tensor& g = context.gradient();
            const Tensor k = arange(0, h + 1, 1, {DType::i32, g.device()});
            const Tensor weights = where((k == 0) | (k == h), full({}, 1, {g.dtype(), g.device()}), 2);
            return Tensors{to_half(name, g, scale) * reshape(weights, {h + 1, 1})};
        },
        RuleKind::differentiable);
}

/// Normalisation factor of n results.
double scale_of(const char* name, std::string_view norm, bool backwards, std::int64_t n) {
    const auto count = static_cast<double>(n);
    if (norm == "ortho") return 1 / std::sqrt(count);
    if (norm != "backward" && norm != "forward")
        throw ValueError(
            fmt::format("{}: expected norm \"backward\", \"ortho\" or \"forward\", got \"{}\"", name, norm));
    return (norm == "backward") == backwards ? 1 / count : 1;
}

/// x converted to a floating-point type.
Tensor floating(const Tensor& x) { return is_floating(x.dtype()) ? x : x.to(DType::f32); }

/// Number of axes, without that of real and imaginary parts.
int axes_of(const char* name, const Tensor& x, bool pairs) {
    if (pairs) detail::require_pairs(name, "x", x);
    return pairs ? x.rank() - 1 : x.rank();
}

/// @param requested length of the transform, or -1
std::int64_t length_of(const char* name, std::int64_t requested, std::int64_t default_length, const Tensor& x) {
    if (requested != -1 && requested < 1)
        throw ValueError(
            fmt::format("{}: expected a length of at least 1, or -1 for that of x, got {}", name, requested));
    if (requested == -1 && default_length < 1)
        throw ShapeError(
            fmt::format("{}: expected at least one element along the axis, got x of {}", name, x.shape().str()));
    return requested == -1 ? default_length : requested;
}

/// x truncated, or padded with zeros, to n elements along an axis.
Tensor crop_or_pad(const Tensor& x, int axis, std::int64_t n) {
    const std::int64_t length = x.size(axis);
    if (length == n) return x;
    if (length > n) return slice(x, axis, 0, n);
    Dims after = Dims::filled(x.rank(), 0);
    after[axis] = n - length;
    return pad(x, Dims::filled(x.rank(), 0), after);
}

Tensor along(const char* name, const Tensor& x, std::int64_t n, int axis, bool backwards, std::string_view norm) {
    n = length_of(name, n, x.size(axis), x);
    return transformed(name, crop_or_pad(x, axis, n), axis, backwards, scale_of(name, norm, backwards, n));
}

/// @param conjugate the opposite direction, as in ihfft
Tensor real_along(const char* name, const Tensor& x, std::int64_t n, int axis, bool conjugate, std::string_view norm) {
    n = length_of(name, n, x.size(axis), x);
    const double scale = scale_of(name, norm, conjugate, n);
    const Tensor in = crop_or_pad(x, axis, n);
    Tensor y;
    if (n % 2 != 0) y = slice(transformed(name, complex(in, zeros_like(in)), axis, false, scale), axis, 0, n / 2 + 1);
    else y = movedim(to_half(name, movedim(in, axis, -1), scale), -2, axis);
    return conjugate ? complex(select(y, -1, 0), -select(y, -1, 1)) : y;
}

/// @param conjugate the opposite direction, as in hfft
Tensor back_along(const char* name, const Tensor& x, std::int64_t n, int axis, bool conjugate, std::string_view norm) {
    n = length_of(name, n, 2 * (x.size(axis) - 1), x);
    const double scale = scale_of(name, norm, !conjugate, n);
    Tensor in = crop_or_pad(x, axis, n / 2 + 1);
    if (conjugate) in = complex(select(in, -1, 0), -select(in, -1, 1));
    if (n % 2 != 0) return select(transformed(name, hermitian(in, axis, n), axis, true, scale), -1, 0);
    return movedim(to_real(name, movedim(in, axis, -2), scale), -1, axis);
}

/// Axes of a multidimensional transform, and their lengths, or -1.
struct TransformAxes {
    std::vector<int> axes;
    std::vector<std::int64_t> lengths;
};

TransformAxes transform_axes(const char* name, const Tensor& x, int rank, const Dims& sizes, const Dims& axes) {
    if (!sizes.empty() && !axes.empty() && sizes.rank() != axes.rank())
        throw ValueError(
            fmt::format("{}: expected as many sizes as axes, got {} and {}", name, sizes.str(), axes.str()));
    if (sizes.rank() > rank)
        throw ShapeError(fmt::format("{}: expected no more sizes than x has axes, got {} for x of {}", name,
                                     sizes.str(), x.shape().str()));
    TransformAxes result;
    if (axes.empty()) {
        const int count = sizes.empty() ? rank : sizes.rank();
        for (int i = rank - count; i < rank; ++i) result.axes.push_back(i);
    }
    for (const std::int64_t axis : axes) result.axes.push_back(normalize_axis(name, axis, rank));
    for (std::size_t i = 0; i < result.axes.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
            if (result.axes[i] == result.axes[k])
                throw ValueError(fmt::format("{}: expected each axis once, got {}", name, axes.str()));
    for (std::size_t i = 0; i < result.axes.size(); ++i)
        result.lengths.push_back(sizes.empty() ? -1 : sizes[static_cast<int>(i)]);
    if (result.axes.empty())
        throw ShapeError(fmt::format("{}: expected at least one axis, got x of {}", name, x.shape().str()));
    return result;
}

Tensor over(const char* name, Tensor x, const Dims& sizes, const Dims& axes, bool backwards, std::string_view norm) {
    const TransformAxes transform = transform_axes(name, x, axes_of(name, x, true), sizes, axes);
    x = floating(x);
    for (std::size_t i = transform.axes.size(); i-- > 0;)
        x = along(name, x, transform.lengths[i], transform.axes[i], backwards, norm);
    return x;
}

Tensor real_over(const char* name, const Tensor& x, const Dims& sizes, const Dims& axes, std::string_view norm) {
    const TransformAxes transform = transform_axes(name, x, axes_of(name, x, false), sizes, axes);
    Tensor y = real_along(name, floating(x), transform.lengths.back(), transform.axes.back(), false, norm);
    for (std::size_t i = transform.axes.size() - 1; i-- > 0;)
        y = along(name, y, transform.lengths[i], transform.axes[i], false, norm);
    return y;
}

Tensor back_over(const char* name, const Tensor& x, const Dims& sizes, const Dims& axes, std::string_view norm) {
    const TransformAxes transform = transform_axes(name, x, axes_of(name, x, true), sizes, axes);
    Tensor y = floating(x);
    for (std::size_t i = 0; i + 1 < transform.axes.size(); ++i)
        y = along(name, y, transform.lengths[i], transform.axes[i], true, norm);
    return back_along(name, y, transform.lengths.back(), transform.axes.back(), false, norm);
}

Tensor shifted(const char* name, const Tensor& x, const Dims& axes, bool inverse) {
    Dims shifted_axes, shifts;
    const int count = axes.empty() ? x.rank() : axes.rank();
    for (int i = 0; i < count; ++i) {
        const int axis = axes.empty() ? i : normalize_axis(name, axes[i], x.rank());
        shifted_axes.push_back(axis);
        shifts.push_back(inverse ? -(x.size(axis) / 2) : x.size(axis) / 2);
    }
    return shifted_axes.empty() ? x : roll(x, shifts, shifted_axes);
}

Tensor frequencies(const char* name, std::int64_t n, double d, std::int64_t count, const TensorOptions& options) {
    if (n < 1) throw ValueError(fmt::format("{}: expected an n of at least 1, got {}", name, n));
    if (d == 0 || !std::isfinite(d))
        throw ValueError(fmt::format("{}: expected a finite d other than 0, got {}", name, d));
    ops::require_real(name, "dtype", options.dtype);
    const Tensor k = arange(0, count, 1, {DType::i64, options.device});
    const Tensor signed_k = count == n ? where(k < (n + 1) / 2, k, k - n) : k;
    return signed_k.to(options.dtype) * (1 / (static_cast<double>(n) * d));
}

}  // namespace

// Transforms along one axis: name, implementation, whether x is complex, and the direction.
#define ALONG(function, implementation, pairs, backwards)                                        \
    Tensor function(const Tensor& x, std::int64_t n, std::int64_t axis, std::string_view norm) { \
        constexpr auto* name = "fft::" #function;                                                \
        const FunctionCall call(name, {{"x", x}}, {{"n", n}, {"axis", axis}, {"norm", norm}});   \
        call.require_defined({"x"});                                                             \
        const int along_axis = normalize_axis(name, axis, axes_of(name, x, pairs));              \
        return call.result(implementation(name, floating(x), n, along_axis, backwards, norm));   \
    }
ALONG(fft, along, true, false)
ALONG(ifft, along, true, true)
ALONG(rfft, real_along, false, false)
ALONG(irfft, back_along, true, false)
ALONG(hfft, back_along, true, true)
ALONG(ihfft, real_along, false, true)

// Multidimensional transforms, one axis after the other.
#define OVER(function, ...)                                                                                 \
    Tensor function(const Tensor& input, const Dims& sizes, const Dims& axes, std::string_view norm) {      \
        constexpr auto* name = "fft::" #function;                                                           \
        const FunctionCall call(name, {{"x", input}}, {{"sizes", sizes}, {"axes", axes}, {"norm", norm}});  \
        call.require_defined({"x"});                                                                        \
        return call.result(detail::decomposed_in_f32(input, [&](const Tensor& x) { return __VA_ARGS__; })); \
    }
OVER(fft2, over(name, x, sizes, axes, false, norm))
OVER(ifft2, over(name, x, sizes, axes, true, norm))
OVER(rfft2, real_over(name, x, sizes, axes, norm))
OVER(irfft2, back_over(name, x, sizes, axes, norm))
OVER(fftn, over(name, x, sizes, axes, false, norm))
OVER(ifftn, over(name, x, sizes, axes, true, norm))
OVER(rfftn, real_over(name, x, sizes, axes, norm))
OVER(irfftn, back_over(name, x, sizes, axes, norm))

Tensor fftfreq(std::int64_t n, double d, const TensorOptions& options) {
    const FunctionCall call("fft::fftfreq", {}, {{"n", n}, {"d", d}});
    return call.result(frequencies("fft::fftfreq", n, d, n, options));
}

Tensor rfftfreq(std::int64_t n, double d, const TensorOptions& options) {
    const FunctionCall call("fft::rfftfreq", {}, {{"n", n}, {"d", d}});
    return call.result(frequencies("fft::rfftfreq", n, d, n / 2 + 1, options));
}

Tensor fftshift(const Tensor& x, const Dims& axes) {
    const FunctionCall call("fft::fftshift", {{"x", x}}, {{"axes", axes}});
    call.require_defined({"x"});
    return call.result(shifted("fft::fftshift", x, axes, false));
}

Tensor ifftshift(const Tensor& x, const Dims& axes) {
    const FunctionCall call("fft::ifftshift", {{"x", x}}, {{"axes", axes}});
    call.require_defined({"x"});
    return call.result(shifted("fft::ifftshift", x, axes, true));
}

}  // namespace declivity::fft
