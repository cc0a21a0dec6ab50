// Conversions between types, and integer arithmetic, compared with the host.
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/ops/half.hpp>

#include "doctor_arithmetic.hpp"

namespace declivity::tools::doctor {
namespace {

std::string floats_to_ints(const Device& device, const std::vector<float>& floats,
                           const std::vector<float>& f32_range) {
    std::string wrong =
        converts<int>(arithmetic_kernel(device, "float_to_int"), floats, [](float x) { return static_cast<int>(x); });
    if (wrong.empty())
        wrong = converts<int>(arithmetic_kernel(device, "float_to_int_saturated"), f32_range,
                              [](float x) { return saturated<int>(double{x}); });
    return wrong.empty() ? converts<int>(arithmetic_kernel(device, "float_to_int_nearest"), f32_range,
                                         [](float x) { return saturated<int>(std::nearbyint(double{x})); })
                         : wrong;
}

std::string floats_to_longs(const Device& device, const std::vector<float>& floats,
                            const std::vector<float>& f32_range) {
    const std::string wrong = converts<std::int64_t>(arithmetic_kernel(device, "float_to_long"), floats,
                                                     [](float x) { return static_cast<std::int64_t>(x); });
    return wrong.empty() ? converts<std::int64_t>(arithmetic_kernel(device, "float_to_long_saturated"), f32_range,
                                                  [](float x) { return saturated<std::int64_t>(x); })
                         : wrong;
}

std::string saturated_nan(const Device& device) {
    const std::vector<float> none(16, NAN);
    const std::string wrong =
        converts<int>(arithmetic_kernel(device, "float_to_int_saturated"), none, [](float) { return 0; });
    return wrong.empty() ? converts<std::int64_t>(arithmetic_kernel(device, "float_to_long_saturated"), none,
                                                  [](float) { return std::int64_t{0}; })
                         : wrong;
}

std::string ints_to_floats(const Device& device, const std::vector<int>& ints) {
    const std::vector<std::uint32_t> unsigned_ints(ints.begin(), ints.end());
    const std::string wrong =
        converts<float>(arithmetic_kernel(device, "int_to_float"), ints, [](int x) { return static_cast<float>(x); });
    return wrong.empty() ? converts<float>(arithmetic_kernel(device, "uint_to_float"), unsigned_ints,
                                           [](std::uint32_t x) { return static_cast<float>(x); })
                         : wrong;
}

std::string longs_to_floats(const Device& device, const std::vector<std::int64_t>& longs) {
    const std::vector<std::uint64_t> unsigned_longs(longs.begin(), longs.end());
    const std::string wrong = converts<float>(arithmetic_kernel(device, "long_to_float"), longs,
                                              [](std::int64_t x) { return static_cast<float>(x); });
    return wrong.empty() ? converts<float>(arithmetic_kernel(device, "ulong_to_float"), unsigned_longs,
                                           [](std::uint64_t x) { return static_cast<float>(x); })
                         : wrong;
}

std::string ints_of_other_sizes(const Device& device, const std::vector<int>& ints,
                                const std::vector<std::int64_t>& longs) {
    std::string wrong = converts<std::int8_t>(arithmetic_kernel(device, "int_to_char"), ints,
                                              [](int x) { return static_cast<std::int8_t>(x); });
    if (wrong.empty())
        wrong = converts<int>(arithmetic_kernel(device, "long_to_int"), longs,
                              [](std::int64_t x) { return static_cast<int>(x); });
    return wrong.empty() ? converts<std::int64_t>(arithmetic_kernel(device, "int_to_long"), ints,
                                                  [](int x) { return std::int64_t{x}; })
                         : wrong;
}

std::string int_arithmetic(const Device& device, const std::vector<int>& ints) {
    auto a = ints, b = any_bits<int>(ints.size(), 6);
    for (std::size_t i = 0; i < b.size(); ++i) {
        b[i] >>= static_cast<int>(i % 31);
        if (b[i] == 0 || b[i] == -1) b[i] = 7;
    }
    const auto pairs = [&](const char* name, auto host) {
        std::vector<int> expected;
        for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(host(a[i], b[i]));
        return first_difference(apply<int>(arithmetic_kernel(device, name), a, b), expected, describe_inputs(a, b));
    };
    std::string wrong = pairs("int_divide", [](int x, int y) { return x / y; });
    if (wrong.empty()) wrong = pairs("int_remainder", [](int x, int y) { return x % y; });
    if (wrong.empty())
        wrong = pairs("int_multiply", [](int x, int y) {
            return static_cast<int>(static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y));
        });
    if (wrong.empty())
        wrong = pairs("uint_divide", [](int x, int y) {
            return static_cast<int>(static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(y));
        });
    if (wrong.empty())
        wrong = pairs("uint_high", [](int x, int y) {
            return static_cast<int>(std::uint64_t{static_cast<std::uint32_t>(x)} * static_cast<std::uint32_t>(y) >> 32);
        });
    return wrong;
}

std::string long_arithmetic(const Device& device, const std::vector<std::int64_t>& longs) {
    auto a = longs, b = any_bits<std::int64_t>(longs.size(), 7);
    for (std::size_t i = 0; i < b.size(); ++i) {
        b[i] >>= static_cast<int>(i % 63);
        if (b[i] == 0 || b[i] == -1) b[i] = 11;
    }
    const auto pairs = [&]<class Out>(const char* name, Out, auto host) {
        std::vector<Out> expected;
        for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(host(a[i], b[i]));
        return first_difference(apply<Out>(arithmetic_kernel(device, name), a, b), expected, describe_inputs(a, b));
    };
    const auto u = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    std::string wrong = pairs("long_divide", std::int64_t{}, [](std::int64_t x, std::int64_t y) { return x / y; });
    if (wrong.empty())
        wrong = pairs("long_remainder", std::int64_t{}, [](std::int64_t x, std::int64_t y) { return x % y; });
    if (wrong.empty())
        wrong = pairs("long_multiply", std::int64_t{},
                      [&](std::int64_t x, std::int64_t y) { return static_cast<std::int64_t>(u(x) * u(y)); });
    if (wrong.empty())
        wrong = pairs("ulong_divide", std::int64_t{},
                      [&](std::int64_t x, std::int64_t y) { return static_cast<std::int64_t>(u(x) / u(y)); });
    if (wrong.empty())
        wrong = pairs("ulong_shift", std::int64_t{}, [&](std::int64_t x, std::int64_t y) {
            return static_cast<std::int64_t>((u(x) << (y & 63)) ^ (u(x) >> (y & 31)));
        });
    if (wrong.empty()) wrong = pairs("long_less", 0, [](std::int64_t x, std::int64_t y) { return x < y ? 1 : 0; });
    return wrong;
}

/// Random bit patterns, and integers at and next to the midpoint of two neighbouring f32 values.
std::vector<int> some_ints() {
    auto ints = any_bits<int>(kNumbers, 3);
    for (const int number : {0, 1, -1, 16777216, 16777217, 16777218, 16777219, -16777217, INT32_MAX, INT32_MIN,
                             33554434, 33554435, 33554438})
        ints.push_back(number);
    return ints;
}

std::vector<std::int64_t> some_longs() {
    auto longs = any_bits<std::int64_t>(kNumbers, 4);
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{1} << 53, (std::int64_t{1} << 53) + 1, (std::int64_t{1} << 40) + (1 << 16),
          (std::int64_t{1} << 40) + (1 << 16) + 1, INT64_MAX, INT64_MIN, std::int64_t{16777217}})
        longs.push_back(value);
    for (std::size_t i = 0; i < 256; ++i) longs.push_back(longs[i] >> (i % 60));
    return longs;
}

/// Numbers that are exact in f16, and at and next to the midpoint of two neighbours.
std::vector<float> rounding_ties() {
    std::vector<float> out;
    for (std::uint32_t bits = 0; bits < 0x7c00; bits += bits < 0x0410 || bits > 0x7bf0 ? 1 : 7) {
        float16 low, high;
        low.bits = static_cast<std::uint16_t>(bits), high.bits = static_cast<std::uint16_t>(bits + 1);
        const float a = low, b = bits == 0x7bff ? 65536.0F : float{high}, middle = a + (b - a) / 2;
        for (const float value : {a, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)})
            out.push_back(value), out.push_back(-value);
    }
    for (const float value : {1e-10F, 65519.996F, 65520.0F, 1e30F, INFINITY, -INFINITY, NAN}) out.push_back(value);
    return out;
}

}  // namespace

void examine_conversions(DoctorRun& e, const Device& device) {
    const std::vector<float> floats{0,           -0.0F, 0.5F,   1.5F,     2.5F,       -0.5F,         -1.5F, -2.5F,
                                    0.49999997F, 3.99F, -3.99F, 127.5F,   254.5F,     255.5F,        256,   300,
                                    -300,        1e6F,  -1e6F,  16777215, 2147483520, -2147483648.0F};
    auto f32_range = floats;
    for (const float value : {2147483648.0F, -3e9F, 3e9F, 1e18F, -1e18F, 9.2233715e18F, 9.223372e18F, -9.223372e18F,
                              1e19F, -1e20F, INFINITY, -INFINITY, FLT_MAX})
        f32_range.push_back(value);
    e.check("f32 to i32: towards zero, saturating, to nearest even",
            [&] { return floats_to_ints(device, floats, f32_range); });
    e.check("f32 to u8, saturating", [&] {
        return converts<std::uint8_t>(arithmetic_kernel(device, "float_to_uchar_saturated"), f32_range,
                                      [](float x) { return saturated<std::uint8_t>(double{x}); });
    });
    e.check("f32 to i64: towards zero, saturating", [&] { return floats_to_longs(device, floats, f32_range); });
    e.check_unused("NaN becomes 0 in saturating conversions", [&] { return saturated_nan(device); });
    const std::vector<int> ints = some_ints();
    e.check("i32 and u32 to f32, to nearest even", [&] { return ints_to_floats(device, ints); });
    const std::vector<std::int64_t> longs = some_longs();
    e.check("i64 and u64 to f32, to nearest even", [&] { return longs_to_floats(device, longs); });
    e.check("i32, i64 and i8 among each other", [&] { return ints_of_other_sizes(device, ints, longs); });
    e.check("i32: division, remainder, products, upper half of products", [&] { return int_arithmetic(device, ints); });
    e.check("i64: division, remainder, products, shifts, comparison", [&] { return long_arithmetic(device, longs); });
}

void examine_reduced_precision(DoctorRun& e, const Device& device) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const auto f16_to_f32 = [](std::uint16_t bits) {
        float16 half;
        half.bits = bits;
        return float{half};
    };
    const auto f32_to_f16 = [](float x) { return float16(x).bits; };
    // All NaNs compare equal.
    const auto check_equal = [](std::vector<std::uint16_t> got, const std::vector<std::uint16_t>& expected,
                                int mantissa, const std::vector<float>& sources) {
        const std::uint16_t infinity = static_cast<std::uint16_t>(((1 << (15 - mantissa)) - 1) << mantissa);
        for (std::size_t i = 0; i < got.size(); ++i)
            if ((got[i] & 0x7fff) > infinity && (expected[i] & 0x7fff) > infinity) got[i] = expected[i];
        return first_difference(got, expected, describe_inputs(sources));
    };
    const auto ties = rounding_ties();
    std::vector<std::uint16_t> rounded;
    for (const float number : ties) rounded.push_back(f32_to_f16(number));
    e.check(
        "f16 in integer arithmetic, as the library loads and rounds it: all 65536 values, ties, numbers too large and "
        "too "
        "small",
        [&] {
            const std::string wrong = converts<float>(arithmetic_kernel(device, "from_f16"), all, f16_to_f32);
            return wrong.empty()
                       ? check_equal(apply<std::uint16_t>(arithmetic_kernel(device, "to_f16"), ties), rounded, 10, ties)
                       : wrong;
        });
    e.check("bf16 by shifts: all 65536 values, ties", [&] {
        const auto from = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); };
        std::vector<std::uint16_t> normal;  // a load may flush denormals
        for (const std::uint16_t bits : all)
            if (!denormal(from(bits))) normal.push_back(bits);
        const std::string wrong = converts<float>(arithmetic_kernel(device, "from_bf16"), normal, from);
        if (!wrong.empty()) return wrong;
        auto floats = any_bits<float>(kNumbers, 8);
        for (std::size_t i = 0; i < 1024; ++i)
            floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(0x3f008000U + (i << 16))));
        std::erase_if(floats, [](float x) { return denormal(x); });
        std::vector<std::uint16_t> expected;
        for (const float value : floats) expected.push_back(bfloat16(value).bits);
        return check_equal(apply<std::uint16_t>(arithmetic_kernel(device, "to_bf16"), floats), expected, 7, floats);
    });
    e.check_unused("f16 by vload_half: all 65536 values",
                   [&] { return converts<float>(arithmetic_kernel(device, "vload_half"), all, f16_to_f32); });
    e.check_unused("f16 by vstore_half: ties to even, numbers too large and too small", [&] {
        return check_equal(apply<std::uint16_t>(arithmetic_kernel(device, "vstore_half"), ties), rounded, 10, ties);
    });
}

}  // namespace declivity::tools::doctor
