// Floor 2. Element types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <declivity/export.hpp>
#include <declivity/ops/half.hpp>

namespace declivity {

/// Type of one element of a tensor. `boolean` takes one byte, 0 or 1. f16 (IEEE 754 binary16) and bf16 (the upper half
/// of an f32) are types to store numbers in: arithmetic on them, sums included, is that of f32, and results are rounded
/// to nearest.
enum class DType : std::uint8_t { f32, f64, i8, u8, i32, i64, boolean, f16, bf16 };

/// Bytes of one element.
DECLIVITY_API std::size_t size_of(DType type) noexcept;
/// "f32", "f64", "i8", "u8", "i32", "i64", "bool", "f16", "bf16".
DECLIVITY_API std::string_view name_of(DType type) noexcept;
/// True for f32, f64, f16 and bf16, the types that carry gradients.
DECLIVITY_API bool is_floating(DType type) noexcept;
/// True for f16 and bf16.
DECLIVITY_API bool is_half(DType type) noexcept;
/// The type that numbers of a type are computed with: f32 for f16 and bf16, otherwise the type itself.
DECLIVITY_API DType compute_type(DType type) noexcept;

/// The DType of a C++ type; only the types named here have one.
template <class T>
consteval DType dtype_of() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, float>) return DType::f32;
    else if constexpr (std::is_same_v<U, double>) return DType::f64;
    else if constexpr (std::is_same_v<U, float16>) return DType::f16;
    else if constexpr (std::is_same_v<U, bfloat16>) return DType::bf16;
    else if constexpr (std::is_same_v<U, std::int8_t>) return DType::i8;
    else if constexpr (std::is_same_v<U, std::uint8_t>) return DType::u8;
    else if constexpr (std::is_same_v<U, bool>) return DType::boolean;
    else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 4) return DType::i32;
    else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 8) return DType::i64;
    else static_assert(sizeof(U) == 0, "declivity has no DType for this C++ type");
}

}  // namespace declivity
