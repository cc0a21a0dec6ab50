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

/// @addtogroup ops
/// @{

/// Element type of a tensor. `boolean` takes one byte, 0 or 1. f16 (IEEE 754 binary16) and bf16 (the upper 16 bits of
/// an f32) are storage types: arithmetic, reductions included, is in f32, and results are rounded to nearest.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

/// All element types, in the order of the enumeration.
inline constexpr std::array kDTypes{DType::f32, DType::f64, DType::f16,    DType::bf16, DType::i8,
                                    DType::u8,  DType::i16, DType::u16,    DType::i32,  DType::u32,
                                    DType::i64, DType::u64, DType::boolean};

/// Type categories, in the order of type promotion.
enum class DTypeKind : std::uint8_t { boolean, integer, floating };

/// Properties of an element type.
struct DTypeInfo {
    std::string_view name;  ///< "f32", "f64", "f16", "bf16", "i8", ..., "u64", "bool"
    std::size_t size;       ///< bytes of one element
    DTypeKind kind;
    bool is_signed;            ///< true for floating types and signed integers
    std::string_view cl_type;  ///< OpenCL C type of an element in memory: "float", "uchar", ...
    DType compute;             ///< type of the arithmetic: f32 for f16 and bf16, otherwise the type itself
    DType sum;                 ///< type of sums: i64 for bool and all integers except u64
};
/// Properties of a type.
DECLIVITY_API const DTypeInfo& dtype_info(DType type) noexcept;

/// Bytes of one element.
inline std::size_t size_of(DType type) noexcept { return dtype_info(type).size; }
/// Name of a type: "f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64" or "bool".
inline std::string_view name_of(DType type) noexcept { return dtype_info(type).name; }
/// True for f32, f64, f16 and bf16, the types that carry gradients.
inline bool is_floating(DType type) noexcept { return dtype_info(type).kind == DTypeKind::floating; }
/// True for signed and unsigned integers; false for bool.
inline bool is_integer(DType type) noexcept { return dtype_info(type).kind == DTypeKind::integer; }
/// True for f16 and bf16.
inline bool is_16bit_float(DType type) noexcept { return type == DType::f16 || type == DType::bf16; }
[[deprecated("is_16bit_float")]] inline bool is_half(DType type) noexcept { return is_16bit_float(type); }
/// Type of the arithmetic on a type: f32 for f16 and bf16, otherwise the type itself.
inline DType compute_type(DType type) noexcept { return dtype_info(type).compute; }

/// Writes the name.
DECLIVITY_API std::ostream& operator<<(std::ostream& out, DType type);

/// Type promotion of two types, as in PyTorch: the wider of two of one category; the floating type of a floating and
/// another; the integer of an integer and bool. A signed and an unsigned integer give the smallest signed type that
/// represents both (i8 and u8: i16); f16 and bf16 give f32.
/// @throws TypeError for u64 with a signed integer: no integer type represents both
DECLIVITY_API DType promote_types(DType a, DType b);

/// DType of a C++ type; only the types listed here have one.
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

/// @}

}  // namespace declivity
