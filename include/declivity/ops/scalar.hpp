// Layer 2. Host numbers as operands.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include <declivity/export.hpp>
#include <declivity/ops/dtype.hpp>

namespace declivity {

/// @addtogroup ops
/// @{

/// A number with its value and category: an integer of up to 64 bits, a floating number, or a bool. Converts implicitly
/// from any arithmetic C++ type.
class DECLIVITY_API Scalar {
  public:
    constexpr Scalar() noexcept : Scalar(0) {}
    template <class T>
    requires std::is_arithmetic_v<T>
    constexpr Scalar(T value) noexcept  // NOLINT: a number is a scalar
        : kind_(kind_of(value)) {
        if constexpr (std::is_floating_point_v<T>) bits_ = std::bit_cast<std::uint64_t>(static_cast<double>(value));
        else bits_ = static_cast<std::uint64_t>(value);
    }

    [[nodiscard]] constexpr DTypeKind kind() const noexcept {
        return kind_ == Kind::real      ? DTypeKind::floating
               : kind_ == Kind::boolean ? DTypeKind::boolean
                                        : DTypeKind::integer;
    }
    [[nodiscard]] constexpr bool is_floating() const noexcept { return kind_ == Kind::real; }
    /// Converts as static_cast does; integers modulo 2^bits. A floating number must be in the range of an integer type.
    template <class T>
    [[nodiscard]] constexpr T to() const noexcept {
        if (kind_ == Kind::real) return static_cast<T>(std::bit_cast<double>(bits_));
        if (kind_ == Kind::above) return static_cast<T>(bits_);
        return static_cast<T>(static_cast<std::int64_t>(bits_));
    }
    [[nodiscard]] constexpr double to_double() const noexcept { return to<double>(); }

    /// Negation; integers modulo 2^64.
    [[nodiscard]] constexpr Scalar operator-() const noexcept {
        if (kind_ == Kind::real) return -to_double();
        return static_cast<std::int64_t>(~bits_ + 1);
    }

    /// True if an integer type, or bool, represents this number exactly.
    [[nodiscard]] bool fits(DType type) const noexcept;
    /// "2", "0.5", "True".
    [[nodiscard]] std::string str() const;

    friend constexpr bool operator==(const Scalar& a, const Scalar& b) noexcept {
        return a.kind() == b.kind() &&
               (a.is_floating() ? a.to_double() == b.to_double() : a.kind_ == b.kind_ && a.bits_ == b.bits_);
    }

  private:
    enum class Kind : std::uint8_t { boolean, whole, above, real };  // above: an integer beyond 2^63 - 1
    template <class T>
    static constexpr Kind kind_of(T value) noexcept {
        if constexpr (std::is_floating_point_v<T>) return Kind::real;
        else if constexpr (std::is_same_v<T, bool>) return Kind::boolean;
        else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) return value >> 63 != 0 ? Kind::above : Kind::whole;
        else return Kind::whole;
    }
    Kind kind_;
    std::uint64_t bits_ = 0;
};

/// Default type of a number: f32, i64 or bool.
constexpr DType dtype_of(const Scalar& number) noexcept {
    return number.is_floating() ? DType::f32 : number.kind() == DTypeKind::integer ? DType::i64 : DType::boolean;
}

/// @}

}  // namespace declivity
