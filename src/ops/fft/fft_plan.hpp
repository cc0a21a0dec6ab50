// Layer 2, private. How lengths of Fourier transforms are taken apart.
#pragma once

#include <cstdint>
#include <vector>

namespace declivity::ops {

/// Whether the only primes of n > 0 are 2, 3, 5 and 7.
bool fft_smooth(std::int64_t n);

/// Passes of a transform (cl_kernels/fft/fft_vectors.clh): a radix of 2, 3, 4, 5, 7 or 8 each, in 4 bits, the first one
/// lowest.
struct FftPasses {
    std::uint64_t radices = 0;
    std::int32_t count = 0;
    [[nodiscard]] std::int64_t radix(std::int32_t pass) const {
        return static_cast<std::int64_t>(radices >> (4 * pass)) & 15;
    }
};
/// Of a smooth n > 1. A power of 2 is of 8s and 4s, with a single 2 for n = 2 alone, or where `several` passes are
/// wanted.
FftPasses fft_passes(std::int64_t n, bool several = false);

/// Lengths up to `most` whose product is n, as few and as alike as they can be; the first is the longest.
std::vector<std::int64_t> fft_parts(std::int64_t n, std::int64_t most);

/// The length that a transform of n, which is not smooth, is computed in: smooth, and at least 2 n - 1.
std::int64_t fft_padded(std::int64_t n);

}  // namespace declivity::ops
