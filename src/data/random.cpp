#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include <declivity/data/random.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::data {

// counter = {block, low word of index, purpose and upper 16 bits of index, epoch}
Random::Random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, Purpose purpose) noexcept
    : counter_{0, static_cast<std::uint32_t>(index),
               static_cast<std::uint32_t>(purpose) << 16 | static_cast<std::uint32_t>(index >> 32 & 0xffff),
               static_cast<std::uint32_t>(epoch)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

std::uint32_t Random::word() noexcept {
    if (used_ == 4) {
        words_ = philox4x32_10(counter_, key_);
        ++counter_[0];
        used_ = 0;
    }
    return words_[static_cast<std::size_t>(used_++)];
}

float Random::uniform() noexcept { return unit_uniform(word()); }

float Random::normal() noexcept {
    const float radius = std::sqrt(-2.0F * std::log(1.0F - uniform()));
    return radius * std::cos(2.0F * std::numbers::pi_v<float> * uniform());
}

std::int64_t Random::below(std::int64_t count) {
    if (count < 1) throw ValueError(fmt::format("Random::below: expected a count of at least 1, got {}", count));
    // Takes as many bits as the largest value needs and rejects what is too large: under two draws on average.
    const auto max_value = static_cast<std::uint64_t>(count - 1);
    const auto bits = static_cast<int>(std::bit_width(max_value));
    for (;;) {
        std::uint64_t value = 0;
        if (bits > 32) value = static_cast<std::uint64_t>(word()) << 32 | word();
        else if (bits > 0) value = word();
        value &= bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits);
        if (value <= max_value) return static_cast<std::int64_t>(value);
    }
}

std::vector<std::int64_t> shuffled_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
    if (count < 0) throw ValueError(fmt::format("shuffled_order: expected a count of at least 0, got {}", count));
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    Random random(seed, epoch, 0, Purpose::shuffle);
    for (std::int64_t last = count - 1; last > 0; --last)
        std::swap(order[static_cast<std::size_t>(last)], order[static_cast<std::size_t>(random.below(last + 1))]);
    return order;
}

}  // namespace declivity::data
