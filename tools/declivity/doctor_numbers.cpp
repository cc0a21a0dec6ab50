// Arithmetic, conversions and the library's own functions, against the host's.
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <tests/ops/math_cases.hpp>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr std::size_t kCount = 4096;

template <class T>
bool denormal(T x) {
    return x != 0 && std::abs(x) < std::numeric_limits<T>::min();
}

Kernel kernel(const Device& device, const std::string& name) {
    Defines defines;
    if (device.info().fp64) defines.set("HAS_DOUBLE", 1);
    return Kernel(device, {"doctor_arithmetic.cl", "doctor_" + name, defines});
}

/// Any bits, numbers of ordinary sizes, and special ones: three lists that go together.
template <class T>
std::array<std::vector<T>, 3> operands() {
    std::array<std::vector<T>, 3> out;
    std::mt19937_64 engine(1);
    const auto ordinary = [&] {
        return static_cast<T>((static_cast<double>(engine() >> 11) * 0x1p-53 - 0.5) *
                              std::ldexp(1.0, static_cast<int>(engine() % 40) - 20));
    };
    for (std::size_t i = 0; i < 3; ++i) {
        out[i] = any_bits<T>(kCount / 4, 2 + i);
        for (T& one : out[i])
            if (std::isnan(one))
                one = std::numeric_limits<T>::quiet_NaN();  // what becomes of signaling ones differs among hosts
        while (out[i].size() < kCount - 512) out[i].push_back(ordinary());
    }
    // What cancels: fused and unfused differ in all digits.
    while (out[0].size() < kCount - 216) {
        const T x = 1 + ordinary() * static_cast<T>(0x1p-12), y = 1 + ordinary() * static_cast<T>(0x1p-12);
        out[0].push_back(x), out[1].push_back(y), out[2].push_back(-(x * y));
    }
    using Limits = std::numeric_limits<T>;
    const std::vector<T> special{0,
                                 -T{0},
                                 1,
                                 -1,
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::quiet_NaN(),
                                 Limits::max(),
                                 -Limits::max(),
                                 Limits::min(),
                                 T{0.5},
                                 T{1.5},
                                 T{2.5},
                                 T{-2.5}};
    for (const T a : special)
        for (const T b : special)
            out[0].push_back(a), out[1].push_back(b), out[2].push_back(special[(out[2].size() * 5) % special.size()]);
    while (out[0].size() % 64 != 0) out[0].push_back(1), out[1].push_back(2), out[2].push_back(3);
    return out;
}

template <class T>
auto said(const std::vector<T>& a, const std::vector<T>& b = {}, const std::vector<T>& c = {}) {
    return [&a, &b, &c](std::size_t i) {
        std::string out = fmt::format("({}", a[i]);
        if (!b.empty()) out += fmt::format(", {}", b[i]);
        if (!c.empty()) out += fmt::format(", {}", c[i]);
        return out + ")";
    };
}

/// Results that are exactly one number, wherever nothing is denormal.
template <class T, class Host, class... Lists>
std::string exactly(const Kernel& of, Host&& host, const Lists&... in) {
    auto got = apply<T>(of, in...);
    std::vector<T> wanted;
    for (std::size_t i = 0; i < got.size(); ++i) {
        wanted.push_back(host(in[i]...));
        bool flushes = (denormal(in[i]) || ...) || denormal(wanted[i]);
        // Rounded up from below the smallest normal number.
        flushes = flushes || std::abs(wanted[i]) == std::numeric_limits<T>::min();
        if (flushes || (std::isnan(wanted[i]) && std::isnan(got[i]))) got[i] = wanted[i] = 0;
        else if (wanted[i] == 0 && got[i] == 0) got[i] = wanted[i];  // a zero's sign is another check's
    }
    return first_difference(got, wanted, said(in...));
}

/// Largest error in units of the last place, wherever nothing is denormal.
template <class T, class Host, class... Lists>
double worst_ulps(const Kernel& of, Host&& host, const Lists&... in) {
    const auto got = apply<T>(of, in...);
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double wanted = host(static_cast<double>(in[i])...);
        if ((denormal(in[i]) || ...) || std::abs(wanted) < 4 * static_cast<double>(std::numeric_limits<T>::min()))
            continue;
        // Some devices divide by way of a reciprocal, which may be too small.
        if (((std::abs(in[i]) > std::numeric_limits<T>::max() / 8 && !std::isinf(in[i])) || ...)) continue;
        worst = std::max(worst, test::math_error(got[i], wanted, 0));
    }
    return worst;
}

template <class Out, class In, class Host>
std::string converts(const Kernel& of, const std::vector<In>& in, Host&& host) {
    std::vector<Out> wanted;
    for (const In x : in) wanted.push_back(host(x));
    return first_difference(apply<Out>(of, in), wanted, said(in));
}

template <class Whole, class Real>
Whole saturated(Real x) {
    if (std::isnan(x)) return 0;
    constexpr auto low = static_cast<Real>(std::numeric_limits<Whole>::min()),
                   high = static_cast<Real>(std::numeric_limits<Whole>::max());
    if (x <= low) return std::numeric_limits<Whole>::min();
    return x >= high ? std::numeric_limits<Whole>::max() : static_cast<Whole>(x);
}

void examine_floats(Examination& e, const Device& device) {
    const auto [x, y, z] = operands<float>();
    e.check("f32: sums, differences and products are rounded to the nearest", [&] {
        std::string wrong = exactly<float>(
            kernel(device, "add"), [](float a, float b) { return a + b; }, x, y);
        if (wrong.empty())
            wrong = exactly<float>(
                kernel(device, "subtract"), [](float a, float b) { return a - b; }, x, y);
        return wrong.empty() ? exactly<float>(
                                   kernel(device, "multiply"),
                                   [](float a, float b) { return static_cast<float>(double{a} * double{b}); }, x, y)
                             : wrong;
    });
    e.check("f32: fma is fused, and rounded once", [&] {
        return exactly<float>(
            kernel(device, "fma"), [](float a, float b, float c) { return std::fma(a, b, c); }, x, y, z);
    });
    e.fact("f32: x * y + z", [&] {
        const auto got = apply<float>(kernel(device, "multiply_add"), x, y, z);
        int fused = 0, apart = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const volatile float product = static_cast<float>(double{x[i]} * double{y[i]});
            const float two = product + z[i], one = std::fma(x[i], y[i], z[i]);
            if (denormal(x[i]) || denormal(y[i]) || denormal(z[i]) || denormal(one) || denormal(two) || same(one, two))
                continue;
            fused += same(got[i], one) ? 1 : 0;
            apart += same(got[i], two) ? 1 : 0;
        }
        return Fact{fused > 0 && apart > 0 ? "fused here and there"
                    : fused > 0            ? "fused by the compiler"
                                           : "not fused",
                    {{"fused", fused}, {"apart", apart}}};
    });
    e.check("f32: division within 2.5 ulps, square root within 3", [&]() -> std::string {
        const double division = worst_ulps<float>(
            kernel(device, "divide"), [](double a, double b) { return a / b; }, x, y);
        const double root = worst_ulps<float>(
            kernel(device, "sqrt"), [](double a) { return std::sqrt(a); }, x);
        return division <= 2.5 && root <= 3
                   ? ""
                   : fmt::format("division is off by {} ulps, the square root by {}", division, root);
    });
    e.fact("f32: division, square root", [&] {
        const double division = worst_ulps<float>(
            kernel(device, "divide"), [](double a, double b) { return a / b; }, x, y);
        const double root = worst_ulps<float>(
            kernel(device, "sqrt"), [](double a) { return std::sqrt(a); }, x);
        return Fact{fmt::format("off by {:.2f} and {:.2f} ulps at most", division, root),
                    {{"division", division}, {"sqrt", root}}};
    });
    e.check("f32: comparisons, also of NaN and infinity", [&] {
        std::vector<int> wanted;
        auto a = x, b = y;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (denormal(a[i])) a[i] = 0;
            if (denormal(b[i])) b[i] = 0;
            const float p = a[i], q = b[i];
            wanted.push_back((p < q ? 1 : 0) + (p <= q ? 2 : 0) + (p > q ? 4 : 0) + (p >= q ? 8 : 0) +
                             (p == q ? 16 : 0) + (p != q ? 32 : 0));
        }
        return first_difference(apply<int>(kernel(device, "compare"), a, b), wanted, said(a, b));
    });
    e.check("f32: fmin and fmax pass NaN over", [&] {
        const std::string wrong = exactly<float>(
            kernel(device, "least"), [](float a, float b) { return std::fmin(a, b); }, x, y);
        return wrong.empty() ? exactly<float>(
                                   kernel(device, "largest"), [](float a, float b) { return std::fmax(a, b); }, x, y)
                             : wrong;
    });
    e.check("f32: rint, floor, ceil, trunc", [&] {
        std::string wrong = exactly<float>(
            kernel(device, "nearest"), [](float a) { return std::nearbyint(a); }, x);
        if (wrong.empty())
            wrong = exactly<float>(
                kernel(device, "below"), [](float a) { return std::floor(a); }, x);
        if (wrong.empty())
            wrong = exactly<float>(
                kernel(device, "above"), [](float a) { return std::ceil(a); }, x);
        return wrong.empty() ? exactly<float>(
                                   kernel(device, "towards_zero"), [](float a) { return std::trunc(a); }, x)
                             : wrong;
    });
    e.check("f32: signs of zeros", [&] {
        const std::vector<float> a{0.0F, -0.0F, 0.0F, -0.0F, -1, 1}, b{1, 1, -1, -1, 0.0F, -0.0F};
        std::vector<float> wanted;
        for (std::size_t i = 0; i < a.size(); ++i) wanted.push_back(a[i] * b[i]);
        return first_difference(apply<float>(kernel(device, "multiply"), a, b), wanted, said(a, b));
    });
    e.check("f32: elements are copied bit for bit", [&] {
        auto wanted = any_bits<float>(kCount, 9);
        for (float& one : wanted)
            if (std::isnan(one)) one = 1;
        std::vector<std::uint32_t> bits;
        for (const float one : wanted) bits.push_back(std::bit_cast<std::uint32_t>(one));
        const auto copies = apply<float>(kernel(device, "copy"), wanted);
        std::vector<std::uint32_t> copied;
        for (const float one : copies) copied.push_back(std::bit_cast<std::uint32_t>(one));
        const std::string wrong = first_difference(copied, bits);
        return wrong.empty() ? first_difference(apply<std::uint32_t>(kernel(device, "bits"), wanted), bits) : wrong;
    });
    e.fact("f32: denormals", [&] {
        const std::vector<float> tiny(64, 0x1p-140F), small(64, 0x1p-120F);
        const bool in = apply<float>(kernel(device, "scaled_up"), tiny)[0] != 0,
                   out = apply<float>(kernel(device, "scaled_down"), small)[0] != 0;
        return Fact{fmt::format("{} as operands, {} as results (the library allows both: -cl-denorms-are-zero)",
                                in ? "kept" : "taken for zero", out ? "kept" : "flushed to zero"),
                    {{"operands kept", in}, {"results kept", out}}};
    });
    e.check("vectors of 16, their parts and choices among them", [&] {
        std::vector<float> a, b, wanted;
        std::mt19937 engine(5);
        for (std::size_t i = 0; i < 1024; ++i)
            a.push_back(static_cast<float>(engine() % 200) - 100),
                b.push_back(static_cast<float>(engine() % 200) - 100);
        for (std::size_t i = 0; i < a.size(); i += 16) {
            std::array<float, 16> r{};
            for (std::size_t k = 0; k < 16; ++k)
                r[k] = a[i + k] < b[i + k] ? a[i + k] * b[i + k] + 1 : a[i + k] - b[i + k];
            const std::array<float, 4> mixed{a[i], b[i + 1], a[i + 15], b[i + 14]};
            for (std::size_t k = 0; k < 4; ++k) r[2 * k] += mixed[3 - k];
            wanted.insert(wanted.end(), r.begin(), r.end());
        }
        const Buffer left = to_device(device, a), right = to_device(device, b), out(device, a.size() * 4);
        launch(kernel(device, "vectors"), {{a.size() / 16}},
               {argument<float>(left), argument<float>(right), argument<float>(out)});
        return first_difference(to_host<float>(out, a.size()), wanted);
    });
}

void examine_conversions(Examination& e, const Device& device) {
    const std::vector<float> floats{0,           -0.0F, 0.5F,   1.5F,     2.5F,       -0.5F,         -1.5F, -2.5F,
                                    0.49999997F, 3.99F, -3.99F, 127.5F,   254.5F,     255.5F,        256,   300,
                                    -300,        1e6F,  -1e6F,  16777215, 2147483520, -2147483648.0F};
    auto wide = floats;
    for (const float one : {2147483648.0F, -3e9F, 3e9F, 1e18F, -1e18F, 9.2233715e18F, 9.223372e18F, -9.223372e18F,
                            1e19F, -1e20F, INFINITY, -INFINITY, FLT_MAX})
        wide.push_back(one);
    e.check("f32 to i32: towards zero, saturating, to the nearest even", [&] {
        std::string wrong =
            converts<int>(kernel(device, "float_to_int"), floats, [](float x) { return static_cast<int>(x); });
        if (wrong.empty())
            wrong = converts<int>(kernel(device, "float_to_int_saturated"), wide,
                                  [](float x) { return saturated<int>(double{x}); });
        return wrong.empty() ? converts<int>(kernel(device, "float_to_int_nearest"), wide,
                                             [](float x) { return saturated<int>(std::nearbyint(double{x})); })
                             : wrong;
    });
    e.check("f32 to u8, saturating", [&] {
        return converts<std::uint8_t>(kernel(device, "float_to_uchar_saturated"), wide,
                                      [](float x) { return saturated<std::uint8_t>(double{x}); });
    });
    e.check("f32 to i64: towards zero, saturating", [&] {
        const std::string wrong = converts<std::int64_t>(kernel(device, "float_to_long"), floats,
                                                         [](float x) { return static_cast<std::int64_t>(x); });
        return wrong.empty() ? converts<std::int64_t>(kernel(device, "float_to_long_saturated"), wide,
                                                      [](float x) { return saturated<std::int64_t>(x); })
                             : wrong;
    });
    e.check_unused("NaN becomes 0 where a conversion saturates", [&] {
        const std::vector<float> none(16, NAN);
        const std::string wrong =
            converts<int>(kernel(device, "float_to_int_saturated"), none, [](float) { return 0; });
        return wrong.empty() ? converts<std::int64_t>(kernel(device, "float_to_long_saturated"), none,
                                                      [](float) { return std::int64_t{0}; })
                             : wrong;
    });
    auto ints = any_bits<int>(kCount, 3);
    for (const int one : {0, 1, -1, 16777216, 16777217, 16777218, 16777219, -16777217, INT32_MAX, INT32_MIN, 33554434,
                          33554435, 33554438})
        ints.push_back(one);
    e.check("i32 and u32 to f32, to the nearest even", [&] {
        const std::vector<std::uint32_t> unsigned_ints(ints.begin(), ints.end());
        const std::string wrong =
            converts<float>(kernel(device, "int_to_float"), ints, [](int x) { return static_cast<float>(x); });
        return wrong.empty() ? converts<float>(kernel(device, "uint_to_float"), unsigned_ints,
                                               [](std::uint32_t x) { return static_cast<float>(x); })
                             : wrong;
    });
    auto longs = any_bits<std::int64_t>(kCount, 4);
    for (const std::int64_t one :
         {std::int64_t{0}, std::int64_t{1} << 53, (std::int64_t{1} << 53) + 1, (std::int64_t{1} << 40) + (1 << 16),
          (std::int64_t{1} << 40) + (1 << 16) + 1, INT64_MAX, INT64_MIN, std::int64_t{16777217}})
        longs.push_back(one);
    for (std::size_t i = 0; i < 256; ++i) longs.push_back(longs[i] >> (i % 60));
    e.check("i64 and u64 to f32, to the nearest even", [&] {
        const std::vector<std::uint64_t> unsigned_longs(longs.begin(), longs.end());
        const std::string wrong = converts<float>(kernel(device, "long_to_float"), longs,
                                                  [](std::int64_t x) { return static_cast<float>(x); });
        return wrong.empty() ? converts<float>(kernel(device, "ulong_to_float"), unsigned_longs,
                                               [](std::uint64_t x) { return static_cast<float>(x); })
                             : wrong;
    });
    e.check("i32, i64 and i8 among each other", [&] {
        std::string wrong = converts<std::int8_t>(kernel(device, "int_to_char"), ints,
                                                  [](int x) { return static_cast<std::int8_t>(x); });
        if (wrong.empty())
            wrong =
                converts<int>(kernel(device, "long_to_int"), longs, [](std::int64_t x) { return static_cast<int>(x); });
        return wrong.empty()
                   ? converts<std::int64_t>(kernel(device, "int_to_long"), ints, [](int x) { return std::int64_t{x}; })
                   : wrong;
    });
    e.check("i32: division, remainder, products, their upper half", [&] {
        auto a = ints, b = any_bits<int>(ints.size(), 6);
        for (std::size_t i = 0; i < b.size(); ++i) {
            b[i] >>= static_cast<int>(i % 31);
            if (b[i] == 0 || b[i] == -1) b[i] = 7;
        }
        const auto pairs = [&](const char* name, auto host) {
            std::vector<int> wanted;
            for (std::size_t i = 0; i < a.size(); ++i) wanted.push_back(host(a[i], b[i]));
            return first_difference(apply<int>(kernel(device, name), a, b), wanted, said(a, b));
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
                return static_cast<int>(std::uint64_t{static_cast<std::uint32_t>(x)} * static_cast<std::uint32_t>(y) >>
                                        32);
            });
        return wrong;
    });
    e.check("i64: division, remainder, products, shifts, comparison", [&] {
        auto a = longs, b = any_bits<std::int64_t>(longs.size(), 7);
        for (std::size_t i = 0; i < b.size(); ++i) {
            b[i] >>= static_cast<int>(i % 63);
            if (b[i] == 0 || b[i] == -1) b[i] = 11;
        }
        const auto pairs = [&]<class Out>(const char* name, Out, auto host) {
            std::vector<Out> wanted;
            for (std::size_t i = 0; i < a.size(); ++i) wanted.push_back(host(a[i], b[i]));
            return first_difference(apply<Out>(kernel(device, name), a, b), wanted, said(a, b));
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
    });
}

/// Numbers that are halves, lie in the middle of two neighbours, and right beside it.
std::vector<float> around_halves() {
    std::vector<float> out;
    for (std::uint32_t bits = 0; bits < 0x7c00; bits += bits < 0x0410 || bits > 0x7bf0 ? 1 : 7) {
        float16 low, high;
        low.bits = static_cast<std::uint16_t>(bits), high.bits = static_cast<std::uint16_t>(bits + 1);
        const float a = low, b = bits == 0x7bff ? 65536.0F : float{high}, middle = a + (b - a) / 2;
        for (const float one : {a, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)})
            out.push_back(one), out.push_back(-one);
    }
    for (const float one : {1e-10F, 65519.996F, 65520.0F, 1e30F, INFINITY, -INFINITY, NAN}) out.push_back(one);
    return out;
}

void examine_halves(Examination& e, const Device& device) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const auto widened = [](std::uint16_t bits) {
        float16 half;
        half.bits = bits;
        return float{half};
    };
    const auto narrowed = [](float x) { return float16(x).bits; };
    // Any NaN is a NaN.
    const auto alike = [](std::vector<std::uint16_t> got, const std::vector<std::uint16_t>& wanted, int mantissa,
                          const std::vector<float>& of) {
        const std::uint16_t infinity = static_cast<std::uint16_t>(((1 << (15 - mantissa)) - 1) << mantissa);
        for (std::size_t i = 0; i < got.size(); ++i)
            if ((got[i] & 0x7fff) > infinity && (wanted[i] & 0x7fff) > infinity) got[i] = wanted[i];
        return first_difference(got, wanted, said(of));
    };
    const auto numbers = around_halves();
    std::vector<std::uint16_t> rounded;
    for (const float one : numbers) rounded.push_back(narrowed(one));
    e.check(
        "f16 in integer arithmetic, as the library reads and rounds it: all 65536, ties, numbers too large and too "
        "small",
        [&] {
            const std::string wrong = converts<float>(kernel(device, "from_f16"), all, widened);
            return wrong.empty() ? alike(apply<std::uint16_t>(kernel(device, "to_f16"), numbers), rounded, 10, numbers)
                                 : wrong;
        });
    e.check("bf16 by shifts: all 65536, ties", [&] {
        const auto from = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); };
        std::vector<std::uint16_t> normal;  // a load may flush denormals
        for (const std::uint16_t bits : all)
            if (!denormal(from(bits))) normal.push_back(bits);
        const std::string wrong = converts<float>(kernel(device, "from_bf16"), normal, from);
        if (!wrong.empty()) return wrong;
        auto floats = any_bits<float>(kCount, 8);
        for (std::size_t i = 0; i < 1024; ++i)
            floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(0x3f008000U + (i << 16))));
        std::erase_if(floats, [](float x) { return denormal(x); });
        std::vector<std::uint16_t> wanted;
        for (const float one : floats) wanted.push_back(bfloat16(one).bits);
        return alike(apply<std::uint16_t>(kernel(device, "to_bf16"), floats), wanted, 7, floats);
    });
    e.check_unused("f16 by vload_half: all 65536",
                   [&] { return converts<float>(kernel(device, "vload_half"), all, widened); });
    e.check_unused("f16 by vstore_half: ties to even, numbers too large and too small", [&] {
        return alike(apply<std::uint16_t>(kernel(device, "vstore_half"), numbers), rounded, 10, numbers);
    });
}

void examine_doubles(Examination& e, const Device& device) {
    if (!device.info().fp64) return e.skip("f64", "the device does not report cl_khr_fp64");
    const auto [x, y, z] = operands<double>();
    e.check("f64: sums, products, quotients, square roots are rounded to the nearest", [&] {
        std::string wrong = exactly<double>(
            kernel(device, "double_add"), [](double a, double b) { return a + b; }, x, y);
        if (wrong.empty())
            wrong = exactly<double>(
                kernel(device, "double_multiply"), [](double a, double b) { return a * b; }, x, y);
        if (wrong.empty())
            wrong = exactly<double>(
                kernel(device, "double_divide"), [](double a, double b) { return a / b; }, x, y);
        return wrong.empty() ? exactly<double>(
                                   kernel(device, "double_sqrt"), [](double a) { return std::sqrt(a); }, x)
                             : wrong;
    });
    e.check("f64: fma is fused, and rounded once", [&] {
        return exactly<double>(
            kernel(device, "double_fma"), [](double a, double b, double c) { return std::fma(a, b, c); }, x, y, z);
    });
    e.check("f64 to f32, i64 and back", [&] {
        auto inner = x, ordered = x;
        std::erase_if(inner, [](double a) { return denormal(static_cast<float>(a)) || denormal(a); });
        std::erase_if(ordered, [](double a) { return std::isnan(a); });
        std::string wrong =
            converts<float>(kernel(device, "double_to_float"), inner, [](double a) { return static_cast<float>(a); });
        if (wrong.empty())
            wrong = converts<std::int64_t>(kernel(device, "double_to_long"), ordered,
                                           [](double a) { return saturated<std::int64_t>(a); });
        auto floats = operands<float>()[0];
        std::erase_if(floats, [](float a) { return denormal(a); });
        if (wrong.empty())
            wrong = converts<double>(kernel(device, "float_to_double"), floats, [](float a) { return double{a}; });
        return wrong.empty() ? converts<double>(kernel(device, "long_to_double"), any_bits<std::int64_t>(kCount, 4),
                                                [](std::int64_t a) { return static_cast<double>(a); })
                             : wrong;
    });
}

}  // namespace

void examine_arithmetic(Examination& e) {
    const Device device = e.device();
    examine_floats(e, device);
    examine_conversions(e, device);
    examine_halves(e, device);
    examine_doubles(e, device);
}

void examine_maths(Examination& e) {
    const Device device = e.device();
    const auto x = test::math_arguments(1U << 14);
    const auto sweep = [&](const std::string& name, bool f64, int vector) {
        Defines defines{{"REAL", f64 ? "double" : "float"}};
        if (f64) defines.set("REAL_IS_DOUBLE", 1);
        if (vector > 1) defines.set("VECTOR", vector);
        return Kernel(device, {"doctor_math.cl", "doctor_" + name, defines});
    };
    const auto run = [&]<class Real>(const std::string& name, int vector, const std::vector<Real>& in) {
        const Buffer from = to_device(device, in), to(device, in.size() * sizeof(Real));
        const std::size_t element = sizeof(Real) * static_cast<std::size_t>(vector);
        launch(sweep(name, sizeof(Real) == 8, vector), {{in.size() / static_cast<std::size_t>(vector)}},
               {BufferArgument{from, 0, element}, BufferArgument{to, 0, element}});
        return to_host<Real>(to, in.size());
    };
    /// What is wrong beyond `allowed`, by error(i).
    const auto worst = [](std::size_t count, double allowed, auto error, auto said_of) -> std::string {
        std::size_t at = 0;
        double most = 0;
        for (std::size_t i = 0; i < count; ++i)
            if (const double one = error(i); !(one <= most)) most = one, at = i;
        return most <= allowed ? "" : fmt::format("{} ulps off, and {} are allowed: {}", most, allowed, said_of(at));
    };
    for (const test::MathCase& one : test::math_cases())
        for (const int vector : {1, 16})
            e.check(fmt::format("{} of f32{}", one.name, vector > 1 ? ", 16 wide" : ""), [&] {
                const auto y = run(one.name, vector, x);
                return worst(
                    x.size(), one.allowed(device.info().type),
                    [&](std::size_t i) { return test::math_error(one, x[i], y[i]); },
                    [&](std::size_t i) {
                        return fmt::format("of {:a} it gives {:a}, wants {:a}", x[i], y[i], one.reference(x[i]));
                    });
            });
    for (const int vector : {1, 16})
        e.check(fmt::format("pow of f32{}", vector > 1 ? ", 16 wide" : ""), [&] {
            const auto [a, b] = test::pow_arguments(1U << 14);
            const Buffer as = to_device(device, a), bs = to_device(device, b), to(device, a.size() * sizeof(float));
            const std::size_t element = sizeof(float) * static_cast<std::size_t>(vector);
            launch(sweep("pow", false, vector), {{a.size() / static_cast<std::size_t>(vector)}},
                   {BufferArgument{as, 0, element}, BufferArgument{bs, 0, element}, BufferArgument{to, 0, element}});
            const auto y = to_host<float>(to, a.size());
            // Structured bindings are no variables to capture.
            const auto &left = a, &right = b;
            return worst(
                left.size(), test::kPowUlps, [&](std::size_t i) { return test::pow_error(left[i], right[i], y[i]); },
                [&](std::size_t i) { return fmt::format("of {:a} and {:a} it gives {:a}", left[i], right[i], y[i]); });
        });
    e.check("finite numbers and NaN are told apart by their bits", [&] {
        const std::vector<float> some{0,        1,         FLT_MAX, -FLT_MAX,
                                      INFINITY, -INFINITY, NAN,     std::bit_cast<float>(0xffc00001U)};
        return first_difference(apply<int>(sweep("classify", false, 1), some), std::vector<int>{1, 1, 1, 1, 0, 0, 2, 2},
                                said(some));
    });
    if (!device.info().fp64) return e.skip("f64", "the device does not report cl_khr_fp64");
    std::vector<double> wide;
    for (const float value : x)
        if (std::abs(value) > FLT_MIN || value == 0 || std::isnan(value)) wide.push_back(value);
    for (const test::MathCase& one : test::math_cases())
        e.check(fmt::format("{} of f64", one.name), [&] {
            const auto y = run(one.name, 1, wide);
            return worst(
                wide.size(), test::kMathUlpsF64,
                [&](std::size_t i) { return test::math_error_f64(one, wide[i], y[i]); },
                [&](std::size_t i) {
                    return fmt::format("of {:a} it gives {:a}, wants {:a}", wide[i], y[i], one.reference(wide[i]));
                });
        });
}

void examine_half(Examination& e) {
    const Device device = e.device();
    const bool reported = device.info().fp16;
    const auto examine = [&](const Kernel& kernel) {
        std::vector<float> a, b, wanted;
        std::mt19937 engine(11);
        for (int i = 0; i < 2048; ++i) {
            a.push_back(float16(static_cast<float>(engine() % 4096) / 64 - 32)),
                b.push_back(float16(static_cast<float>(engine() % 4096) / 64 - 32));
            wanted.push_back(float16(a.back() + b.back())), wanted.push_back(float16(a.back() * b.back()));
        }
        const Buffer as = to_device(device, a), bs = to_device(device, b), out(device, wanted.size() * sizeof(float));
        launch(kernel, {{a.size()}}, {argument<float>(as), argument<float>(bs), argument<float>(out)});
        return first_difference(to_host<float>(out, wanted.size()), wanted);
    };
    if (reported) {
        e.check_unused("cl_khr_fp16 is reported: sums and products in half", [&] {
            return examine(Kernel(device, {"doctor_half.cl", "doctor_half", {{"ENABLED", "1"}}}));
        });
        return;
    }
    for (const bool enabled : {false, true})
        e.fact(fmt::format("cl_khr_fp16 is not reported; a kernel in half, {}",
                           enabled ? "the extension enabled" : "nothing enabled"),
               [&] {
                   try {
                       const Kernel kernel(
                           device, {"doctor_half.cl", "doctor_half", enabled ? Defines{{"ENABLED", "1"}} : Defines{}});
                       const std::string wrong = examine(kernel);
                       return Fact{
                           wrong.empty() ? "it works all the same" : "it builds, and computes something else: " + wrong,
                           {{"builds", true}, {"right", wrong.empty()}}};
                   } catch (const DeviceError&) {
                       return Fact{"it does not build", {{"builds", false}, {"right", false}}};
                   }
               });
}

}  // namespace declivity::tools::doctor
