// Cosine transforms by Fourier transforms of the same length (J. Makhoul, A fast cosine transform in one and two
// dimensions, 1980).
#include <cmath>
#include <numbers>

#include <declivity/functions/complex.hpp>
#include <declivity/functions/fft.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity::fft {
namespace {

/// exp(-pi i k / (2 n)) for k = 0 .. n / 2, pairs.
Tensor eighth_turns(std::int64_t n, const Tensor& like) {
    const Tensor k = arange(0, n / 2 + 1, 1, {like.dtype(), like.device()});
    const Tensor angle = k * (std::numbers::pi / (2 * static_cast<double>(n)));
    return complex(cos(angle), -sin(angle));
}

/// Scale factors for norm "ortho".
Tensor ortho(std::int64_t n, const Tensor& like) {
    const auto count = static_cast<double>(n);
    const Tensor k = arange(0, n, 1, {DType::i32, like.device()});
    const TensorOptions compute_options{like.dtype(), like.device()};
    return where(k == 0, full({}, std::sqrt(1 / (4 * count)), compute_options), std::sqrt(1 / (2 * count)));
}

/// Checked input in f32 or f64, with its axis last.
Tensor prepare_dct(const char* name, const Tensor& x, std::int64_t axis, std::string_view norm) {
    const int along = normalize_axis(name, axis, x.rank());
    if (norm != "backward" && norm != "ortho")
        throw ValueError(fmt::format("{}: expected norm \"backward\" or \"ortho\", got \"{}\"", name, norm));
    if (x.size(along) < 1)
        throw ShapeError(
            fmt::format("{}: expected at least one element along the axis, got x of {}", name, x.shape().str()));
    const DType real = is_floating(x.dtype()) ? compute_type(x.dtype()) : DType::f32;
    return movedim(x.to(real), along, -1);
}

Tensor finish_dct(const Tensor& y, const Tensor& x, std::int64_t axis) {
    const Tensor moved = movedim(y, -1, normalize_axis("dct", axis, x.rank()));
    return is_16bit_float(x.dtype()) ? moved.to(x.dtype()) : moved;
}

}  // namespace

Tensor dct(const Tensor& x, std::int64_t axis, std::string_view norm) {
    const FunctionCall call("fft::dct", {{"x", x}}, {{"axis", axis}, {"norm", norm}});
    call.require_defined({"x"});
    const Tensor in = prepare_dct("fft::dct", x, axis, norm);
    const std::int64_t n = in.size(-1), h = n / 2;
    // Even indices ascending, odd indices descending.
    const Tensor order = n == 1 ? in : concat({slice(in, -1, 0, n, 2), flip(slice(in, -1, 1, n, 2), {-1})}, -1);
    const Tensor rotated = complex_mul(rfft(order), eighth_turns(n, in)) * 2;
    // The second half consists of the imaginary parts of the first.
    Tensor y = select(rotated, -1, 0);
    if (n > 2) y = concat({y, flip(-slice(select(rotated, -1, 1), -1, 1, n - h), {-1})}, -1);
    if (norm == "ortho") y = y * ortho(n, in);
    return call.result(finish_dct(y, x, axis));
}

Tensor idct(const Tensor& x, std::int64_t axis, std::string_view norm) {
    const FunctionCall call("fft::idct", {{"x", x}}, {{"axis", axis}, {"norm", norm}});
    call.require_defined({"x"});
    Tensor in = prepare_dct("fft::idct", x, axis, norm);
    const std::int64_t n = in.size(-1), h = n / 2;
    if (norm == "ortho") in = in / ortho(n, in);
    // y[k] - i y[n - k] for k = 0 .. n / 2; y[n] is 0.
    const Tensor zero = zeros_like(slice(in, -1, 0, 1));
    const Tensor others = h == 0 ? zero : concat({zero, flip(slice(in, -1, n - h, n), {-1})}, -1);
    const Tensor spectrum =
        complex_mul(complex(slice(in, -1, 0, h + 1), -others), complex_conj(eighth_turns(n, in))) * 0.5;
    const Tensor order = irfft(spectrum, n);
    if (n == 1) return call.result(finish_dct(order, x, axis));
    const std::int64_t even = n - h;
    const Tensor rising = slice(order, -1, 0, even), falling = flip(slice(order, -1, even, n), {-1});
    Shape shape = in.shape();
    // Interleaves both; the last element of an odd length is alone.
    Tensor y = stack({slice(rising, -1, 0, h), falling}, -1);
    shape[shape.rank() - 1] = 2 * h;
    y = reshape(y, shape);
    if (even > h) y = concat({y, slice(rising, -1, h, even)}, -1);
    return call.result(finish_dct(y, x, axis));
}

}  // namespace declivity::fft
