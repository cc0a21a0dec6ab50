// Layer 2, private. Factorisation of the lengths of Fourier transforms.
#pragma once

#include <cstdint>
#include <vector>

namespace declivity::ops {

/// Returns whether n > 0 has no prime factors but 2, 3, 5 and 7.
bool fft_smooth(std::int64_t n);

/// Passes of a transform (cl_kernels/fft/fft_vectors.clh): radices 2, 3, 4, 5, 7 or 8, 4 bits each, the first one
/// lowest.
struct FftPasses {
    std::uint64_t radices = 0;
    std::int32_t count = 0;
    [[nodiscard]] std::int64_t radix(std::int32_t pass) const {
        return static_cast<std::int64_t>(radices >> (4 * pass)) & 15;
    }
};
/// Passes of a smooth n > 1. Powers of 2 use radices 8 and 4, with a single 2 only for n = 2, or if `several` passes
/// are requested.
FftPasses fft_passes(std::int64_t n, bool several = false);

/// Factors of n of at most `max_part`, as few and as equal as possible; the first is the largest.
std::vector<std::int64_t> fft_parts(std::int64_t n, std::int64_t max_part);

/// The length of the convolution for a length n that is not smooth: smooth, and at least 2 n - 1.
std::int64_t fft_padded(std::int64_t n);

}  // namespace declivity::ops
