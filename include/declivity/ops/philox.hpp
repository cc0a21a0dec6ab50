// Layer 2. Counter-based random numbers on the host, bit-identical to those of the device kernels.
#pragma once

#include <array>
#include <cstdint>

namespace declivity {

/// @addtogroup ops
/// @{

/// Philox4x32-10: four independent, uniformly distributed words for each (counter, key), with no state between calls.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                                   std::array<std::uint32_t, 2> key) noexcept {
    constexpr int kRounds = 10;
    constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
    constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
    for (int round = 0; round < kRounds; ++round) {
        const std::uint64_t product0 = kMultiplier0 * counter[0];
        const std::uint64_t product1 = kMultiplier1 * counter[2];
        counter = {
            static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
            static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
        key[0] += kWeyl0;
        key[1] += kWeyl1;
    }
    return counter;
}

/// Block number `block` of the stream with this seed, numbered as in the generators of the library.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox_block(std::uint64_t seed, std::uint64_t block) noexcept {
    return philox4x32_10({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                         {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// Converts a random word to a float in [0, 1): its upper 24 bits times 2^-24, which is exact in f32, so every device
/// produces the same value.
[[nodiscard]] constexpr float unit_uniform(std::uint32_t word) noexcept {
    return static_cast<float>(word >> 8) * 0x1p-24F;
}

/// @}

}  // namespace declivity
