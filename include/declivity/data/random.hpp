// Layer 5. Random numbers for data: a stream for each (seed, epoch, index), so that what an example looks like
// does not depend on the thread that prepares it or on the examples prepared before.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::data {

/// What a stream of random numbers is for; streams of different purpose share no numbers.
enum class Purpose : std::uint16_t { augment = 1, shuffle = 2, draw = 3, user = 4 };

/// The numbers of one stream, one after the other, from Philox4x32-10 (see ops/philox.hpp). Period 2^34 words.
/// All but `normal` are the same to the bit on every machine.
class DECLIVITY_API Random {
  public:
    /// @param index 0 to 2^48 - 1; @param epoch 0 to 2^32 - 1; larger values wrap
    Random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, Purpose purpose = Purpose::augment) noexcept;

    /// 32 random bits.
    std::uint32_t word() noexcept;
    /// Uniform in [0, 1), a multiple of 2^-24.
    float uniform() noexcept;
    /// Uniform in [low, high).
    float uniform(float low, float high) noexcept { return low + (high - low) * uniform(); }
    /// Mean 0, standard deviation 1 (Box and Muller 1958); the last bit may differ between mathematics libraries.
    float normal() noexcept;
    /// Uniform among 0 .. count - 1, without bias.
    /// @throws ValueError unless count >= 1
    std::int64_t below(std::int64_t count);
    /// True with the given probability.
    bool chance(float probability) noexcept { return uniform() < probability; }

  private:
    std::array<std::uint32_t, 4> counter_;
    std::array<std::uint32_t, 2> key_;
    std::array<std::uint32_t, 4> words_{};
    int used_ = 4;
};

/// The numbers 0 .. count - 1 in a random order that depends on (seed, epoch) alone: Fisher and Yates' shuffle as
/// given by Durstenfeld (1964), the same on every machine.
/// @throws ValueError when count is negative
DECLIVITY_API std::vector<std::int64_t> shuffled_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace declivity::data
