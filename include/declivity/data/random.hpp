// Layer 7. Random numbers for data: one stream for each (seed, epoch, index), so that an example depends neither on the
// thread that prepares it nor on the examples prepared before it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// Purpose of a random stream; streams of different purposes are independent.
enum class Purpose : std::uint16_t { augment = 1, shuffle = 2, draw = 3, user = 4 };

/// Random numbers of one stream of Philox4x32-10 (see ops/philox.hpp). Period 2^34 words. All functions except `normal`
/// return bitwise identical results on every machine.
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
    /// Standard normal (Box and Muller 1958); the last bit may differ between math libraries.
    float normal() noexcept;
    /// Uniform integer in 0 .. count - 1, unbiased.
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

/// Random permutation of 0 .. count - 1 that depends on (seed, epoch) only: Fisher-Yates shuffle in the form of
/// Durstenfeld (1964), identical on every machine.
/// @throws ValueError if count is negative
DECLIVITY_API std::vector<std::int64_t> shuffled_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

/// @}

}  // namespace declivity::data
