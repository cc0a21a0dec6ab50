// float16 and bfloat16 compared with their definitions: every bit pattern to float, every tie back; and the names of
// types.
#include <cmath>
#include <cstdint>
#include <limits>

#include <declivity/ops/dtype.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace declivity;

namespace {

/// The value of a bit pattern by the definition of IEEE 754.
double defined(std::uint16_t bits, int mantissa_bits) {
    const int exponent_bits = 15 - mantissa_bits, exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1),
              mantissa = bits & ((1 << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 2 * bias + 1)
        return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    return sign * (exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                 : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits));
}

template <class T>
std::string check(int mantissa_bits) {
    const auto pattern = [](double value) { return T(value).bits; };
    for (int i = 0; i < 0x10000; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        T number;
        number.bits = bits;
        const double value = defined(bits, mantissa_bits);
        const float upcast = number;
        if (std::isnan(value)) {
            if (!std::isnan(upcast) || !std::isnan(static_cast<float>(T(upcast))))
                return fmt::format("{:#x} is a NaN, not {}", i, upcast);
            continue;
        }
        if (static_cast<double>(upcast) != value || std::signbit(upcast) != (i >= 0x8000))
            return fmt::format("{:#x} is {}, not {}", i, value, upcast);
        if (pattern(value) != bits || T(upcast).bits != bits)
            return fmt::format("{} is {:#x}, not {:#x}", value, i, pattern(value));
        // The midpoint (tie) to the next value, and its neighbours, in double and in float.
        const double next = defined(static_cast<std::uint16_t>(i + 1), mantissa_bits);
        if ((i & 0x7fff) == 0x7fff || std::isinf(value) || std::isnan(next)) continue;
        // The step to infinity counts as one more regular step.
        const double tie = std::isinf(next)
                               ? value + (value - defined(static_cast<std::uint16_t>(i - 1), mantissa_bits)) / 2
                               : (value + next) / 2;
        const auto even = static_cast<std::uint16_t>(i % 2 == 0 ? i : i + 1), above = static_cast<std::uint16_t>(i + 1);
        if (pattern(tie) != even) return fmt::format("{} is {:#x}, not {:#x}", tie, even, pattern(tie));
        if (pattern(std::nextafter(tie, value)) != bits) return fmt::format("below {} comes {:#x}", tie, i);
        if (pattern(std::nextafter(tie, 2 * tie)) != above) return fmt::format("above {} comes {:#x}", tie, i + 1);
        const auto near = static_cast<float>(tie);
        if (static_cast<double>(near) != tie) continue;  // among the smallest bf16 values
        if (T(near).bits != even || T(std::nextafter(near, 0.0F)).bits != bits ||
            T(std::nextafter(near, 2 * near)).bits != above)
            return fmt::format("floats around {} go astray", tie);
    }
    return {};
}

}  // namespace

TEST_CASE("dtype: float16, every bit pattern and every tie") { CHECK(check<float16>(10) == ""); }
TEST_CASE("dtype: bfloat16, every bit pattern and every tie") { CHECK(check<bfloat16>(7) == ""); }

TEST_CASE("dtype: limits of float16 and bfloat16") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(static_cast<float>(float16(65504)) == 65504);
    CHECK(static_cast<float>(float16(65519.99)) == 65504);
    CHECK(static_cast<float>(float16(65520)) == infinity);
    CHECK(static_cast<float>(float16(-1e300)) == -infinity);
    CHECK(static_cast<float>(float16(0x1p-25)) == 0);
    CHECK(static_cast<float>(float16(0x1.00001p-25)) == 0x1p-24F);
    CHECK(float16(-0.0).bits == 0x8000);
    CHECK(float16(5e-324).bits == 0);
    CHECK(bfloat16(5e-324).bits == 0);
    CHECK(static_cast<float>(bfloat16(1e39)) == infinity);
    CHECK(static_cast<float>(bfloat16(std::numeric_limits<float>::max())) == infinity);
    // A single rounding from double: by way of float both would round down.
    CHECK(static_cast<float>(float16(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10F);
    CHECK(static_cast<float>(bfloat16(1 + 0x1p-8 + 0x1p-40)) == 1 + 0x1p-7F);
    static_assert(float16(1.5F).bits == 0x3e00 && static_cast<float>(bfloat16(-2)) == -2);
}

TEST_CASE("dtype: sizes, names, and compute types") {
    CHECK(size_of(DType::f16) == 2);
    CHECK(size_of(DType::bf16) == 2);
    CHECK(name_of(DType::f16) == "f16");
    CHECK(name_of(DType::bf16) == "bf16");
    CHECK(dtype_of<float16>() == DType::f16);
    CHECK(dtype_of<bfloat16>() == DType::bf16);
    for (const DType type : kDTypes) {
        if (type == DType::f16 || type == DType::bf16) continue;
        CHECK_FALSE(is_16bit_float(type));
        CHECK(compute_type(type) == type);
    }
    for (const DType type : {DType::f16, DType::bf16}) {
        CHECK(is_16bit_float(type));
        CHECK(is_floating(type));
        CHECK(compute_type(type) == DType::f32);
    }
}
