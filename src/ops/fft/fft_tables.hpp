// Layer 2, private. Factors of Fourier transforms, computed in double and kept on the device, by length. The least
// recently made are let go of where there are many.
#pragma once

#include <cstdint>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Of all passes of fft_passes(n, several), as cl_kernels/fft/fft_vectors.clh has them.
View fft_pass_table(const Device& device, DType dtype, std::int64_t n, bool several);
/// exp(-2 pi i p k / (n m)), p < m and k < n, as cl_kernels/fft/fft_lanes.cl has them.
View fft_segment_table(const Device& device, DType dtype, std::int64_t n, std::int64_t m, std::int64_t block);
/// exp(-2 pi i b k / n), b < lanes and k < n / lanes, as cl_kernels/fft/fft_rows.cl has them.
View fft_row_table(const Device& device, DType dtype, std::int64_t n, std::int64_t lanes);
/// exp(-2 pi i k / n), k = 0 .. count - 1, pairs.
View fft_circle_table(const Device& device, DType dtype, std::int64_t n, std::int64_t count);
/// exp(-pi i j^2 / n), j < n, pairs.
View fft_chirp_table(const Device& device, DType dtype, std::int64_t n);
/// The transform, of a smooth length `padded`, of what a signal times the chirp is convolved with, over `padded`: of
/// exp(pi i j^2 / n) for |j| < n, pairs.
View fft_chirp_spectrum(const Device& device, DType dtype, std::int64_t n, std::int64_t padded);

}  // namespace declivity::ops
