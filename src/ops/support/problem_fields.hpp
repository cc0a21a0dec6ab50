// Layer 2, private. The key of a problem's measurements and its hash, from one list of its fields.
//
// A problem of a Strategy has a function `visit_fields(const Problem&, visit)`, which calls visit(name, value, part)
// for each of its fields, in the order of the key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>
#include <fmt/format.h>

#include "tuning_table.hpp"

namespace declivity::ops {

/// Part of a field in the key: none, its value, or the bucket of its value (bucket()).
enum class KeyPart : std::uint8_t { none, value, bucket };

namespace fields {

template <class E>
requires std::is_enum_v<E> std::string text(E value, KeyPart) { return fmt::format("{}", static_cast<int>(value)); }
inline std::string text(DType dtype, KeyPart) { return std::string(name_of(dtype)); }
inline std::string text(KernelStyle style, KeyPart) { return style == KernelStyle::simd ? "simd" : "simt"; }
inline std::string text(std::string_view value, KeyPart) { return std::string(value); }
inline std::string text(std::int64_t value, KeyPart part) {
    return fmt::format("{}", part == KeyPart::bucket ? bucket(value) : value);
}
template <std::size_t N>
std::string text(const std::array<std::int64_t, N>& values, KeyPart part) {
    std::string out;
    for (const std::int64_t value : values) out += (out.empty() ? "" : ",") + text(value, part);
    return out;
}

inline void mix(std::uint64_t& hash, std::uint64_t number) {
    hash = (hash ^ number) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32U;
}
template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void mix(std::uint64_t& hash, const T& value) { mix(hash, static_cast<std::uint64_t>(value)); }
template <std::size_t N>
void mix(std::uint64_t& hash, const std::array<std::int64_t, N>& values) {
    for (const std::int64_t value : values) mix(hash, static_cast<std::uint64_t>(value));
}
inline void mix(std::uint64_t& /*hash*/, std::string_view /*derived*/) {}  // of other fields

}  // namespace fields

/// "function f32 simd m 64 n 128 constant": a flag appears by its name if it is set.
template <class Problem>
std::string key_of_fields(std::string_view function, const Problem& problem) {
    std::string key(function);
    visit_fields(problem, [&](std::string_view name, const auto& value, KeyPart part) {
        if (part == KeyPart::none) return;
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>) {
            if (value) (key += ' ') += name;
        } else {
            if (!name.empty()) (key += ' ') += name;
            (key += ' ') += fields::text(value, part);
        }
    });
    return key;
}

template <class Problem>
std::uint64_t hash_of_fields(const Problem& problem, std::uint64_t seed) {
    visit_fields(problem, [&](std::string_view, const auto& value, KeyPart) { fields::mix(seed, value); });
    return seed;
}

}  // namespace declivity::ops
