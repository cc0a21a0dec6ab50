// Layer 7, private. Range checks of a config's fields.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::models {

/// Upper limit of a size, since sizes are multiplied.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;

inline void require_sizes(const char* name, std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
    for (const auto& [field, size] : sizes)
        if (size < 1 || size > kMaxSize)
            throw ValueError(fmt::format("{}: expected {} in 1 .. {}, got {}", name, field, kMaxSize, size));
}

/// @param field with the name of its config
inline void require_at_least(std::string_view field, std::int64_t value, std::int64_t min_value) {
    if (value < min_value) throw ValueError(fmt::format("{}: expected at least {}, got {}", field, min_value, value));
}

inline void require_probabilities(const char* name, std::initializer_list<std::pair<const char*, double>> values) {
    for (const auto& [field, value] : values)
        if (!(value >= 0 && value <= 1))
            throw ValueError(fmt::format("{}: expected {} in [0, 1], got {}", name, field, value));
}

inline void require_not_negative(const char* name, std::initializer_list<std::pair<const char*, double>> values) {
    for (const auto& [field, value] : values)
        if (!(value >= 0) || !std::isfinite(value))
            throw ValueError(fmt::format("{}: expected a finite {} of at least 0, got {}", name, field, value));
}

inline void require_above_0(const char* name, std::initializer_list<std::pair<const char*, double>> values) {
    for (const auto& [field, value] : values)
        if (!(value > 0) || !std::isfinite(value))
            throw ValueError(fmt::format("{}: expected a finite {} above 0, got {}", name, field, value));
}

inline void require_divides(const char* name, const char* divisor_name, std::int64_t divisor, const char* dividend_name,
                            std::int64_t dividend) {
    if (dividend % divisor != 0)
        throw ValueError(fmt::format("{}: expected {} that divides {}, got {} and {}", name, divisor_name,
                                     dividend_name, divisor, dividend));
}

/// Checks that padding_idx is in the vocabulary.
inline void require_padding(const char* name, std::int64_t padding_idx, std::int64_t vocab_size) {
    if (padding_idx < 0 || padding_idx >= vocab_size)
        throw ValueError(fmt::format("{}: expected padding_idx in 0 .. {}, got {}", name, vocab_size - 1, padding_idx));
}

}  // namespace declivity::models
