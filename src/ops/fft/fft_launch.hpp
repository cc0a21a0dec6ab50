// Layer 2, private. Launches Fourier transforms.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Complex numbers along an axis: number (o, j, q) is at element offset o * outer_stride + j * step + q * inner_stride,
/// followed by its imaginary part.
struct FftLines {
    std::int64_t outer = 1, n = 1, inner = 1;
    std::int64_t outer_stride = 0, step = 2, inner_stride = 2;

    /// Lines of a dense tensor.
    static FftLines dense(std::int64_t outer, std::int64_t n, std::int64_t inner) {
        return {outer, n, inner, 2 * n * inner, 2 * inner, 2};
    }
    /// Lines of a view (..., n, ..., 2); empty unless its axes merge into one before and one after the transformed
    /// axis.
    static std::optional<FftLines> of(const View& x, int axis);
};

// Kinds of transforms; the same constants are in cl_kernels/fft/fft_real.clh.
constexpr std::int32_t kC2C = 0;   ///< complex numbers to complex numbers
constexpr std::int32_t kR2C = 1;   ///< rows of 2 h real numbers to h + 1 complex ones
constexpr std::int32_t kC2R = -1;  ///< back

/// Conjugation of the transform, and its scale factor.
struct FftNumbers {
    bool conjugate = false;
    double scale = 1;
    [[nodiscard]] double sign() const { return conjugate ? -1 : 1; }
};

/// Transform of any length, from x to `out` (outer, n, inner, 2), dense. f32 or f64.
void launch_fft(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers);

/// Transform of a smooth length above 1; x and `out` do not overlap.
void launch_fft_smooth(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers);
/// Transform of dense rows of 2 h real numbers, h smooth, to h + 1 complex ones, or back; returns false if no single
/// kernel supports it.
bool launch_fft_real_smooth(const View& x, std::int64_t rows, std::int64_t h, bool back, const View& out, double scale);
/// Transform of any length by Bluestein's convolution.
void launch_fft_chirp(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers);

}  // namespace declivity::ops
