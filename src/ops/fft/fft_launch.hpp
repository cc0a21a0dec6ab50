// Layer 2, private. How Fourier transforms are launched.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Complex numbers along an axis: number (o, j, q) lies at o * outer_stride + j * step + q * inner_stride elements, its
/// imaginary part behind it.
struct FftLines {
    std::int64_t outer = 1, n = 1, inner = 1;
    std::int64_t outer_stride = 0, step = 2, inner_stride = 2;

    /// Of a dense tensor.
    static FftLines dense(std::int64_t outer, std::int64_t n, std::int64_t inner) {
        return {outer, n, inner, 2 * n * inner, 2 * inner, 2};
    }
    /// Of a view (..., n, ..., 2); none where its axes are not one before and one behind.
    static std::optional<FftLines> of(const View& x, int axis);
};

/// Which transform, and what it is multiplied by.
struct FftNumbers {
    bool conjugate = false;
    double scale = 1;
    [[nodiscard]] double sign() const { return conjugate ? -1 : 1; }
};

/// Any length, from x to `out` (outer, n, inner, 2), dense. f32 or f64.
void launch_fft(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers);

/// One of a smooth length above 1; x and `out` do not overlap.
void launch_fft_smooth(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers);
/// Dense rows of 2 h real numbers, h smooth, to h + 1 complex ones, or back; false where no kernel does so at once.
bool launch_fft_real_smooth(const View& x, std::int64_t rows, std::int64_t h, bool back, const View& out, double scale);
/// One of any length, by a convolution.
void launch_fft_chirp(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers);

}  // namespace declivity::ops
