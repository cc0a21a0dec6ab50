// Layer 2. 16-bit floating types on the host.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace declivity {

namespace detail {

/// Converts a double to a floating format of a sign and the given bits of exponent and mantissa, rounded once: to
/// nearest, ties to even.
template <int ExponentBits, int MantissaBits>
constexpr std::uint16_t narrowed(double value) noexcept {
    // least: exponent of the smallest normal number
    constexpr int bias = (1 << (ExponentBits - 1)) - 1, min_exponent = 1 - bias;
    constexpr std::uint64_t infinity = ((std::uint64_t{1} << ExponentBits) - 1) << MantissaBits;
    const auto all = std::bit_cast<std::uint64_t>(value);
    const auto sign = static_cast<std::uint16_t>(all >> 63 << 15);
    const std::uint64_t magnitude = all << 1 >> 1;
    const auto exponent = static_cast<int>(magnitude >> 52) - 1023;
    const auto with_sign = [sign](std::uint64_t bits) { return static_cast<std::uint16_t>(sign | bits); };
    if (magnitude > std::uint64_t{0x7ff} << 52) return with_sign(infinity | std::uint64_t{1} << (MantissaBits - 1));
    if (exponent > bias) return with_sign(infinity);
    if (exponent < min_exponent - MantissaBits - 1) return with_sign(0);
    const std::uint64_t digits = (magnitude & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
    const int shift = 52 - MantissaBits + (exponent < min_exponent ? min_exponent - exponent : 0);
    const std::uint64_t rounded = (digits + (std::uint64_t{1} << (shift - 1)) - 1 + (digits >> shift & 1)) >> shift;
    // A carry out of the digits increments the exponent, in the end to infinity.
    return with_sign(exponent < min_exponent
                         ? rounded
                         : (static_cast<std::uint64_t>(exponent - min_exponent) << MantissaBits) + rounded);
}

}  // namespace detail

/// @addtogroup ops
/// @{

/// IEEE 754 binary16: 11 bits of precision, magnitudes from 2^-24 to 65504. A storage type; arithmetic is done in
/// float.
struct float16 {  // NOLINT(readability-identifier-naming): named as the types that C++23 has
    std::uint16_t bits = 0;

    constexpr float16() noexcept = default;
    /// Rounds to nearest, ties to even; infinity from 65520 on.
    template <class T>
    requires std::is_arithmetic_v<T>
    constexpr explicit float16(T value) noexcept : bits(detail::narrowed<5, 10>(static_cast<double>(value))) {}
    /// Exact conversion.
    constexpr operator float() const noexcept {  // NOLINT: nothing is lost
        const std::uint32_t sign = (bits & 0x8000U) << 16, magnitude = bits & 0x7fffU;
        if (magnitude < 0x400)
            return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F));
        return std::bit_cast<float>(sign | ((magnitude << 13) + (magnitude < 0x7c00 ? 112U << 23 : 224U << 23)));
    }
};

/// bfloat16, the upper 16 bits of a float: 8 bits of precision and the range of f32. A storage type; arithmetic is done
/// in float.
struct bfloat16 {  // NOLINT(readability-identifier-naming)
    std::uint16_t bits = 0;

    constexpr bfloat16() noexcept = default;
    /// Rounds to nearest, ties to even.
    template <class T>
    requires std::is_arithmetic_v<T>
    constexpr explicit bfloat16(T value) noexcept : bits(detail::narrowed<8, 7>(static_cast<double>(value))) {}
    /// Exact conversion.
    constexpr operator float() const noexcept {
        return std::bit_cast<float>(std::uint32_t{bits} << 16);
    }  // NOLINT: nothing is lost
};

static_assert(sizeof(float16) == 2 && std::is_trivially_copyable_v<float16>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);

/// @}

}  // namespace declivity
