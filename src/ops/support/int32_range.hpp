// Layer 2, private. Range check of numbers given by users, such as sizes, distances and factors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <declivity/ops/shape.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::ops {

/// Sums and products of a few numbers of this magnitude, and of sizes, do not overflow.
constexpr std::int64_t kMaxInt32Range = std::int64_t{1} << 31;

/// @throws ValueError for numbers below -2^31 or above 2^31, which exceed every tensor size
inline void check_int32_range(std::string_view function, std::string_view what, const Dims& numbers) {
    if (std::ranges::any_of(numbers,
                            [](std::int64_t number) { return number > kMaxInt32Range || number < -kMaxInt32Range; }))
        throw ValueError(fmt::format("{}: expected numbers up to 2^31 as {}, got {}", function, what, numbers.str()));
}

}  // namespace declivity::ops
