#include "fft_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace declivity::ops {

bool fft_smooth(std::int64_t n) {
    for (const std::int64_t prime : {2, 3, 5, 7})
        while (n % prime == 0) n /= prime;
    return n == 1;
}

FftPasses fft_passes(std::int64_t n, bool several) {
    FftPasses passes;
    const auto append = [&](std::int64_t radix) {
        passes.radices |= static_cast<std::uint64_t>(radix) << (4 * passes.count++);
        n /= radix;
    };
    for (const std::int64_t prime : {7, 5, 3})
        while (n % prime == 0) append(prime);
    if (several && passes.count == 0 && n <= 8 && n > 2) append(n / 2);
    // Few 2s and 4s: 8 8 2 becomes 8 4 4.
    while (n > 1) append(n % 8 == 0 && n != 16 ? 8 : n == 16 || n == 4 ? 4 : n == 2 ? 2 : 8);
    return passes;
}

std::vector<std::int64_t> fft_parts(std::int64_t n, std::int64_t max_part) {
    if (n <= max_part) return {n};
    for (int count = 2;; ++count) {
        // The smallest divisor above the root, or the largest below.
        const auto root = static_cast<std::int64_t>(std::ceil(std::pow(static_cast<double>(n), 1.0 / count) - 1e-6));
        for (std::int64_t first = root; first <= max_part; ++first) {
            if (n % first != 0) continue;
            std::vector<std::int64_t> parts = fft_parts(n / first, max_part);
            if (parts.size() + 1 > static_cast<std::size_t>(count)) break;
            parts.insert(parts.begin(), first);
            return parts;
        }
        for (std::int64_t first = std::min(root, max_part); first > 1; --first) {
            if (n % first != 0) continue;
            std::vector<std::int64_t> parts = fft_parts(n / first, max_part);
            if (parts.size() + 1 > static_cast<std::size_t>(count)) break;
            parts.insert(parts.begin(), first);
            return parts;
        }
    }
}

std::int64_t fft_padded(std::int64_t n) {
    const std::int64_t min_length = 2 * n - 1;
    auto best = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(min_length)));
    for (const std::int64_t odd : {3, 5, 7, 9, 15}) {
        std::int64_t length = odd;
        while (length < min_length) length *= 2;
        best = std::min(best, length);
    }
    return best;
}

}  // namespace declivity::ops
