// Layer 2. Element types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <type_traits>

#include <declivity/export.hpp>
#include <declivity/ops/half.hpp>

namespace declivity {

/// Type of one element of a tensor. `boolean` takes one byte, 0 or 1. f16 (IEEE 754 binary16) and bf16 (the upper half
/// of an f32) are types to store numbers in: arithmetic on them, sums included, is that of f32, and results are rounded
/// to nearest.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

/// All of them, in the order of the enumeration.
inline constexpr std::array kDTypes{DType::f32, DType::f64, DType::f16,    DType::bf16, DType::i8,
                                    DType::u8,  DType::i16, DType::u16,    DType::i32,  DType::u32,
                                    DType::i64, DType::u64, DType::boolean};

/// Kinds of numbers, in the order in which promotion raises them.
enum class DTypeKind : std::uint8_t { boolean, integer, floating };

/// One row of the table of types.
struct DTypeInfo {
    std::string_view name;  ///< "f32", "f64", "f16", "bf16", "i8", ..., "u64", "bool"
    std::size_t size;       ///< bytes of one element
    DTypeKind kind;
    bool is_signed;            ///< whether it has numbers below 0
    std::string_view cl_type;  ///< the type in OpenCL C that elements are stored in: "float", "uchar", ...
    DType compute;  ///< what numbers of it are computed with: f32 for f16 and bf16, otherwise the type itself
    DType sum;      ///< what sums of it are: i64 for bool and integers but u64
};
DECLIVITY_API const DTypeInfo& dtype_info(DType type) noexcept;

/// Bytes of one element.
inline std::size_t size_of(DType type) noexcept { return dtype_info(type).size; }
/// "f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool".
inline std::string_view name_of(DType type) noexcept { return dtype_info(type).name; }
/// True for f32, f64, f16 and bf16, the types that carry gradients.
inline bool is_floating(DType type) noexcept { return dtype_info(type).kind == DTypeKind::floating; }
/// True for the types of whole numbers, signed or not; not for bool.
inline bool is_integer(DType type) noexcept { return dtype_info(type).kind == DTypeKind::integer; }
/// True for f16 and bf16.
inline bool is_16bit_float(DType type) noexcept { return type == DType::f16 || type == DType::bf16; }
/// The type that numbers of a type are computed with: f32 for f16 and bf16, otherwise the type itself.
inline DType compute_type(DType type) noexcept { return dtype_info(type).compute; }

/// By its name.
DECLIVITY_API std::ostream& operator<<(std::ostream& out, DType type);

/// The type of a result made from elements of two types, as PyTorch has it: the wider of two of one kind, the floating
/// one of a floating and another, the integer of an integer and bool. i8 and u8 give i16, as a signed and an unsigned
/// integer give the smallest signed one that holds both; f16 and bf16 give f32.
/// @throws TypeError for u64 beside a signed integer: no integer holds both
DECLIVITY_API DType promote_types(DType a, DType b);

/// The DType of a C++ type; only the types named here have one.
template <class T>
consteval DType dtype_of() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, float>) return DType::f32;
    else if constexpr (std::is_same_v<U, double>) return DType::f64;
    else if constexpr (std::is_same_v<U, float16>) return DType::f16;
    else if constexpr (std::is_same_v<U, bfloat16>) return DType::bf16;
    else if constexpr (std::is_same_v<U, bool>) return DType::boolean;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 1) return std::is_signed_v<U> ? DType::i8 : DType::u8;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 2) return std::is_signed_v<U> ? DType::i16 : DType::u16;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 4) return std::is_signed_v<U> ? DType::i32 : DType::u32;
    else if constexpr (std::is_integral_v<U> && sizeof(U) == 8) return std::is_signed_v<U> ? DType::i64 : DType::u64;
    else static_assert(sizeof(U) == 0, "declivity has no DType for this C++ type");
}

}  // namespace declivity
