#include "stft.hpp"

#include <algorithm>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/complex.hpp>
#include <declivity/functions/fft.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/alias.hpp"
#include "complex.hpp"
#include "functions/support/windows.hpp"
#include "ops/engine/lazy_array.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

constexpr std::int64_t kMaxOverlaps = 32;  // up to so many frames per sample, one sum for each is efficient

/// Overlap-add of frames (B, frames, n) at distance `hop`: (B, length), zero-padded where it is longer.
Tensor overlap_add(const Tensor& frames, std::int64_t hop, std::int64_t length) {
    const std::int64_t batch = frames.size(0), count = frames.size(1), n = frames.size(2);
    const std::int64_t overlaps = (n + hop - 1) / hop;
    if (overlaps > kMaxOverlaps) return detail::sum_of_windows(frames, 1, length, hop);
    const std::int64_t padded_length = overlaps * hop;
    const Tensor padded = padded_length == n ? frames : pad(frames, {0, 0, 0}, {0, 0, padded_length - n});
    // Part r of frame t is added to block t + r of the result.
    const Tensor parts = reshape(padded, {batch, count, overlaps, hop});
    Tensor sum;
    for (std::int64_t r = 0; r < overlaps; ++r) {
        const Tensor part = pad(select(parts, 2, r), {0, r, 0}, {0, overlaps - 1 - r, 0});
        sum = sum.defined() ? sum + part : part;
    }
    const std::int64_t total = (count + overlaps - 1) * hop;
    const Tensor row = reshape(sum, {batch, total});
    return total >= length ? slice(row, 1, 0, length) : pad(row, {0, 0}, {0, length - total});
}

/// Frames of n samples of x (B, T), (B, frames, n), which share its memory.
Tensor make_frames(const Tensor& x, std::int64_t n, std::int64_t hop) {
    const std::int64_t length = x.size(1);
    const Tensor frames = detail::sliding_windows(x.detach(), 1, n, hop);
    return detail::alias("stft", x, frames.value(), [hop, length](const GradientContext& context) {
        return std::vector{overlap_add(context.gradient(), hop, length)};
    });
}

struct Sizes {
    std::int64_t hop, window;
};

/// @throws ValueError for inconsistent sizes
Sizes sizes_of(const char* name, std::int64_t n_fft, const std::optional<std::int64_t>& hop_length,
               const std::optional<std::int64_t>& win_length, const Tensor& window, const Tensor& x) {
    if (n_fft < 1) throw ValueError(fmt::format("{}: expected an n_fft of at least 1, got {}", name, n_fft));
    const Sizes sizes{hop_length.value_or(n_fft / 4), win_length.value_or(n_fft)};
    if (sizes.hop < 1)
        throw ValueError(fmt::format("{}: expected a hop_length of at least 1, got {}", name, sizes.hop));
    if (sizes.window < 1 || sizes.window > n_fft)
        throw ValueError(fmt::format("{}: expected a win_length of 1 to n_fft, {}, got {}", name, n_fft, sizes.window));
    if (window.defined()) {
        ops::require_shape(name, "the window", window.shape(), {sizes.window});
        ops::require_alike(name, "x", x.dtype(), x.device(), "the window", window.dtype(), window.device());
    }
    return sizes;
}

/// A window of n_fft samples; undefined if it is all ones.
Tensor padded_window(const Tensor& window, std::int64_t length, std::int64_t n_fft, const Tensor& like) {
    if (length == n_fft) return window;
    const Tensor base_window = window.defined() ? window : ones({length}, {like.dtype(), like.device()});
    const std::int64_t left = (n_fft - length) / 2;
    return pad(base_window, Dims{left}, Dims{n_fft - length - left});
}

}  // namespace

namespace detail {

Tensor transformed_frames(const char* name, const Tensor& x, std::int64_t n_fft, const StftOptions& options) {
    const Sizes sizes = sizes_of(name, n_fft, options.hop_length, options.win_length, options.window, x);
    const std::int64_t side = options.center ? n_fft / 2 : 0, length = x.size(1);
    if (options.center && options.pad_mode == PadMode::reflect && side >= length)
        throw ShapeError(fmt::format("{}: expected more than n_fft / 2 = {} samples to mirror, got x of {}", name, side,
                                     x.shape().str()));
    if (length + 2 * side < n_fft || length == 0)
        throw ShapeError(fmt::format("{}: expected a signal of at least n_fft = {} samples, got x of {}", name, n_fft,
                                     x.shape().str()));
    const Tensor padded = side == 0 ? x : pad(x, {side, side}, options.pad_mode);
    Tensor frames = make_frames(padded, n_fft, sizes.hop);
    const Tensor window = padded_window(options.window, sizes.window, n_fft, x);
    if (window.defined()) frames = frames * window;
    const char* norm = options.normalized ? "ortho" : "backward";
    return options.onesided ? fft::rfft(frames, -1, -1, norm)
                            : fft::fft(complex(frames, zeros_like(frames)), -1, -1, norm);
}

}  // namespace detail

Tensor stft(const Tensor& x, std::int64_t n_fft, const StftOptions& options) {
    const auto& [hop_length, win_length, window, center, pad_mode, normalized, onesided] = options;
    const FunctionCall call("stft", {{"x", x}, {"window", window}},
                            {{"n_fft", n_fft},
                             {"hop_length", hop_length.value_or(n_fft / 4)},
                             {"win_length", win_length.value_or(n_fft)},
                             {"center", center},
                             {"pad_mode", pad_mode},
                             {"normalized", normalized},
                             {"onesided", onesided}});
    call.require_defined({"x"});
    ops::require_real("stft", "x", x.dtype());
    if (x.rank() != 1 && x.rank() != 2)
        throw ShapeError(fmt::format("stft: expected x of shape (T) or (B, T), got {}", x.shape().str()));
    if (is_16bit_float(x.dtype()) && (!window.defined() || window.dtype() == x.dtype())) {
        StftOptions upcast_options = options;
        upcast_options.window = detail::upcast(window);
        return call.result(detail::in_f32(
            x.dtype(), [&](const Tensor& in) { return stft(in, n_fft, upcast_options); }, x));
    }
    const Tensor in = x.rank() == 1 ? unsqueeze(x, 0) : x;
    const Tensor y = transpose(detail::transformed_frames("stft", in, n_fft, options), 1, 2);
    return call.result(x.rank() == 1 ? select(y, 0, 0) : y);
}

Tensor istft(const Tensor& x, std::int64_t n_fft, const IstftOptions& options) {
    const auto& [hop_length, win_length, window, center, normalized, onesided, length] = options;
    const FunctionCall call("istft", {{"x", x}, {"window", window}},
                            {{"n_fft", n_fft},
                             {"hop_length", hop_length.value_or(n_fft / 4)},
                             {"win_length", win_length.value_or(n_fft)},
                             {"center", center},
                             {"normalized", normalized},
                             {"onesided", onesided},
                             {"length", length.value_or(-1)}});
    call.require_defined({"x"});
    ops::require_real("istft", "x", x.dtype());
    detail::require_pairs("istft", "x", x);
    if (x.rank() != 3 && x.rank() != 4)
        throw ShapeError(
            fmt::format("istft: expected x of shape (frequencies, frames, 2) or (B, frequencies, frames, 2), got {}",
                        x.shape().str()));
    const Sizes sizes = sizes_of("istft", n_fft, hop_length, win_length, window, x);
    const std::int64_t frequencies = onesided && x.size(-3) != n_fft ? n_fft / 2 + 1 : n_fft;
    if (x.size(-3) != frequencies || x.size(-2) == 0)
        throw ShapeError(fmt::format("istft: expected {} frequencies of n_fft = {}, and frames, got x of {}",
                                     frequencies, n_fft, x.shape().str()));
    if (is_16bit_float(x.dtype())) {
        IstftOptions upcast_options = options;
        upcast_options.window = detail::upcast(window);
        return call.result(detail::in_f32(
            x.dtype(), [&](const Tensor& in) { return istft(in, n_fft, upcast_options); }, x));
    }
    if (length && *length < 1) throw ValueError(fmt::format("istft: expected a length of at least 1, got {}", *length));
    const Tensor in = transpose(x.rank() == 3 ? unsqueeze(x, 0) : x, 1, 2);
    Tensor frames = fft::irfft(in, n_fft, -1, normalized ? "ortho" : "backward");
    const Tensor weights = padded_window(window, sizes.window, n_fft, x);
    if (weights.defined()) frames = frames * weights;
    const std::int64_t count = in.size(1), total = n_fft + sizes.hop * (count - 1);
    const Tensor squares = weights.defined() ? square(weights) : ones({n_fft}, {x.dtype(), x.device()});
    const Tensor window_sum = overlap_add(expand(reshape(squares, {1, 1, n_fft}), {1, count, n_fft}), sizes.hop, total);
    const Tensor sum = overlap_add(frames, sizes.hop, total);
    const std::int64_t start = center ? n_fft / 2 : 0;
    const std::int64_t end = length ? start + *length : center ? total - n_fft / 2 : total;
    if (end <= start)
        throw ShapeError(
            fmt::format("istft: expected more frames than are trimmed at the ends, got x of {}", x.shape().str()));
    const auto trim = [&](const Tensor& row) { return slice(row, 1, start, std::min(end, total)); };
    const Tensor weight = trim(window_sum);
    Tensor y = trim(sum) / where(weight > 1e-11, weight, 1);
    if (end > total) y = pad(y, {0, 0}, {0, end - std::max(start, total)});
    return call.result(x.rank() == 3 ? select(y, 0, 0) : y);
}

}  // namespace declivity
