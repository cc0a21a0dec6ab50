// Layer 2, private. Twiddle factors of Fourier transforms, computed in double and cached on the device, by length. The
// cache is cleared when it would exceed a size limit.
#pragma once

#include <cstdint>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Twiddle factors of all passes of fft_passes(n, several), in the layout of cl_kernels/fft/fft_vectors.clh.
View fft_pass_table(const Device& device, DType dtype, std::int64_t n, bool several);
/// exp(-2 pi i p k / (n m)), p < m and k < n, in the layout of cl_kernels/fft/fft_lanes.cl.
View fft_segment_table(const Device& device, DType dtype, std::int64_t n, std::int64_t m, std::int64_t block);
/// exp(-2 pi i b k / n), b < lanes and k < n / lanes, in the layout of cl_kernels/fft/fft_rows.cl.
View fft_row_table(const Device& device, DType dtype, std::int64_t n, std::int64_t lanes);
/// exp(-2 pi i k / n), k = 0 .. count - 1, pairs.
View fft_circle_table(const Device& device, DType dtype, std::int64_t n, std::int64_t count);
/// exp(-pi i j^2 / n), j < n, pairs.
View fft_chirp_table(const Device& device, DType dtype, std::int64_t n);
/// The transform, of a smooth length `padded`, of the convolution kernel of a signal times the chirp, divided by
/// `padded`: of exp(pi i j^2 / n) for |j| < n, pairs.
View fft_chirp_spectrum(const Device& device, DType dtype, std::int64_t n, std::int64_t padded);

}  // namespace declivity::ops
