// Arithmetic in f32 and f64, compared with the host.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <reference/math_cases.hpp>

#include "doctor_arithmetic.hpp"

namespace declivity::tools::doctor {
namespace {

/// Random bit patterns, numbers of ordinary magnitude, and special values: three parallel operand lists.
template <class T>
std::array<std::vector<T>, 3> operands() {
    std::array<std::vector<T>, 3> out;
    std::mt19937_64 engine(1);
    const auto ordinary = [&] {
        return static_cast<T>((static_cast<double>(engine() >> 11) * 0x1p-53 - 0.5) *
                              std::ldexp(1.0, static_cast<int>(engine() % 40) - 20));
    };
    for (std::size_t i = 0; i < 3; ++i) {
        out[i] = any_bits<T>(kNumbers / 4, 2 + i);
        for (T& output : out[i])
            if (std::isnan(output))
                output = std::numeric_limits<T>::quiet_NaN();  // the result of signaling NaNs differs among hosts
        while (out[i].size() < kNumbers - 512) out[i].push_back(ordinary());
    }
    // Cancellation: fused and unfused results differ in all digits.
    while (out[0].size() < kNumbers - 216) {
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

/// Exactly rounded results must be equal, except where denormals are involved.
template <class T, class Host, class... Lists>
std::string exactly(const Kernel& kernel, Host&& host, const Lists&... in) {
    auto got = apply<T>(kernel, in...);
    std::vector<T> expected;
    for (std::size_t i = 0; i < got.size(); ++i) {
        expected.push_back(host(in[i]...));
        bool flushes = (denormal(in[i]) || ...) || denormal(expected[i]);
        // Rounded up from below the smallest normal number.
        flushes = flushes || std::abs(expected[i]) == std::numeric_limits<T>::min();
        if (flushes || (std::isnan(expected[i]) && std::isnan(got[i]))) got[i] = expected[i] = 0;
        else if (expected[i] == 0 && got[i] == 0) got[i] = expected[i];  // the sign of zero is checked separately
    }
    return first_difference(got, expected, describe_inputs(in...));
}

/// Largest error in ulps, except where denormals are involved.
template <class T, class Host, class... Lists>
double worst_ulps(const Kernel& kernel, Host&& host, const Lists&... in) {
    const auto got = apply<T>(kernel, in...);
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double expected = host(static_cast<double>(in[i])...);
        if ((denormal(in[i]) || ...) || std::abs(expected) < 4 * static_cast<double>(std::numeric_limits<T>::min()))
            continue;
        // Some devices divide by multiplying with a reciprocal, which may underflow.
        if (((std::abs(in[i]) > std::numeric_limits<T>::max() / 8 && !std::isinf(in[i])) || ...)) continue;
        worst = std::max(worst, reference::math_error(got[i], expected, 0));
    }
    return worst;
}

using Floats = std::vector<float>;

std::string sums_and_products(const Device& device, const Floats& x, const Floats& y) {
    std::string wrong = exactly<float>(
        arithmetic_kernel(device, "add"), [](float a, float b) { return a + b; }, x, y);
    if (wrong.empty())
        wrong = exactly<float>(
            arithmetic_kernel(device, "subtract"), [](float a, float b) { return a - b; }, x, y);
    return wrong.empty() ? exactly<float>(
                               arithmetic_kernel(device, "multiply"),
                               [](float a, float b) { return static_cast<float>(double{a} * double{b}); }, x, y)
                         : wrong;
}

Fact multiply_add(const Device& device, const char* kernel, const Floats& x, const Floats& y, const Floats& z) {
    const auto got = apply<float>(arithmetic_kernel(device, kernel), x, y, z);
    int fused = 0, separate = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const volatile float product = static_cast<float>(double{x[i]} * double{y[i]});
        const float separate_result = product + z[i], fused_result = std::fma(x[i], y[i], z[i]);
        if (denormal(x[i]) || denormal(y[i]) || denormal(z[i]) || denormal(fused_result) || denormal(separate_result) ||
            same(fused_result, separate_result))
            continue;
        fused += same(got[i], fused_result) ? 1 : 0;
        separate += same(got[i], separate_result) ? 1 : 0;
    }
    return Fact{fused > 0 && separate > 0 ? "inconsistently fused"
                : fused > 0               ? "fused by the compiler"
                                          : "not fused",
                {{"fused", fused}, {"apart", separate}}};
}

std::string comparisons(const Device& device, const Floats& x, const Floats& y) {
    std::vector<int> expected;
    auto a = x, b = y;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (denormal(a[i])) a[i] = 0;
        if (denormal(b[i])) b[i] = 0;
        const float p = a[i], q = b[i];
        expected.push_back((p < q ? 1 : 0) + (p <= q ? 2 : 0) + (p > q ? 4 : 0) + (p >= q ? 8 : 0) + (p == q ? 16 : 0) +
                           (p != q ? 32 : 0));
    }
    return first_difference(apply<int>(arithmetic_kernel(device, "compare"), a, b), expected, describe_inputs(a, b));
}

std::string roundings(const Device& device, const Floats& x) {
    std::string wrong = exactly<float>(
        arithmetic_kernel(device, "nearest"), [](float a) { return std::nearbyint(a); }, x);
    if (wrong.empty())
        wrong = exactly<float>(
            arithmetic_kernel(device, "below"), [](float a) { return std::floor(a); }, x);
    if (wrong.empty())
        wrong = exactly<float>(
            arithmetic_kernel(device, "above"), [](float a) { return std::ceil(a); }, x);
    return wrong.empty() ? exactly<float>(
                               arithmetic_kernel(device, "towards_zero"), [](float a) { return std::trunc(a); }, x)
                         : wrong;
}

std::string copied_bits(const Device& device) {
    auto expected = any_bits<float>(kNumbers, 9);
    for (float& value : expected)
        if (std::isnan(value)) value = 1;
    std::vector<std::uint32_t> bits;
    for (const float value : expected) bits.push_back(std::bit_cast<std::uint32_t>(value));
    const auto copies = apply<float>(arithmetic_kernel(device, "copy"), expected);
    std::vector<std::uint32_t> copied;
    for (const float copy : copies) copied.push_back(std::bit_cast<std::uint32_t>(copy));
    const std::string wrong = first_difference(copied, bits);
    return wrong.empty() ? first_difference(apply<std::uint32_t>(arithmetic_kernel(device, "bits"), expected), bits)
                         : wrong;
}

Fact denormals(const Device& device) {
    const std::vector<float> tiny(64, 0x1p-140F), small(64, 0x1p-120F);
    const bool in = apply<float>(arithmetic_kernel(device, "scaled_up"), tiny)[0] != 0,
               out = apply<float>(arithmetic_kernel(device, "scaled_down"), small)[0] != 0;
    return Fact{fmt::format("{} as operands, {} as results (the library allows both: -cl-denorms-are-zero)",
                            in ? "kept" : "treated as zero", out ? "kept" : "flushed to zero"),
                {{"operands kept", in}, {"results kept", out}}};
}

std::string vectors(const Device& device) {
    std::vector<float> a, b, expected;
    std::mt19937 engine(5);
    for (std::size_t i = 0; i < 1024; ++i)
        a.push_back(static_cast<float>(engine() % 200) - 100), b.push_back(static_cast<float>(engine() % 200) - 100);
    for (std::size_t i = 0; i < a.size(); i += 16) {
        std::array<float, 16> r{};
        for (std::size_t k = 0; k < 16; ++k) r[k] = a[i + k] < b[i + k] ? a[i + k] * b[i + k] + 1 : a[i + k] - b[i + k];
        const std::array<float, 4> mixed{a[i], b[i + 1], a[i + 15], b[i + 14]};
        for (std::size_t k = 0; k < 4; ++k) r[2 * k] += mixed[3 - k];
        expected.insert(expected.end(), r.begin(), r.end());
    }
    const Buffer left = to_device(device, a), right = to_device(device, b), out(device, a.size() * 4);
    launch(arithmetic_kernel(device, "vectors"), {{a.size() / 16}},
           {argument<float>(left), argument<float>(right), argument<float>(out)});
    return first_difference(to_host<float>(out, a.size()), expected);
}

void examine_floats(DoctorRun& e, const Device& device) {
    const auto [x, y, z] = operands<float>();
    e.check("f32: sums, differences and products are rounded to nearest",
            [&] { return sums_and_products(device, x, y); });
    e.check("f32: fma is fused, with a single rounding", [&] {
        return exactly<float>(
            arithmetic_kernel(device, "fma"), [](float a, float b, float c) { return std::fma(a, b, c); }, x, y, z);
    });
    for (const auto& [name, kernel] : {std::pair{"f32: x * y + z", "multiply_add"},
                                       {"f32: x * y, then + z in another statement", "multiply_then_add"},
                                       {"f32: x * y + z after FP_CONTRACT OFF", "multiply_add_apart"},
                                       {"f32: in two statements after FP_CONTRACT OFF", "multiply_then_add_apart"},
                                       {"f32: x * y in a function with FP_CONTRACT OFF", "multiply_apart_then_add"}})
        e.fact(name, [&, kernel = kernel] { return multiply_add(device, kernel, x, y, z); });
    e.check("f32: division within 2.5 ulps, square root within 3 ulps", [&]() -> std::string {
        const double division = worst_ulps<float>(
            arithmetic_kernel(device, "divide"), [](double a, double b) { return a / b; }, x, y);
        const double root = worst_ulps<float>(
            arithmetic_kernel(device, "sqrt"), [](double a) { return std::sqrt(a); }, x);
        return division <= 2.5 && root <= 3
                   ? ""
                   : fmt::format("division is off by {} ulps, the square root by {}", division, root);
    });
    e.fact("f32: division, square root", [&] {
        const double division = worst_ulps<float>(
            arithmetic_kernel(device, "divide"), [](double a, double b) { return a / b; }, x, y);
        const double root = worst_ulps<float>(
            arithmetic_kernel(device, "sqrt"), [](double a) { return std::sqrt(a); }, x);
        return Fact{fmt::format("errors of at most {:.2f} and {:.2f} ulps", division, root),
                    {{"division", division}, {"sqrt", root}}};
    });
    e.check("f32: comparisons, including NaN and infinity", [&] { return comparisons(device, x, y); });
    e.check("f32: fmin and fmax ignore NaN", [&] {
        const std::string wrong = exactly<float>(
            arithmetic_kernel(device, "least"), [](float a, float b) { return std::fmin(a, b); }, x, y);
        return wrong.empty()
                   ? exactly<float>(
                         arithmetic_kernel(device, "largest"), [](float a, float b) { return std::fmax(a, b); }, x, y)
                   : wrong;
    });
    e.check("f32: rint, floor, ceil, trunc", [&] { return roundings(device, x); });
    e.check("f32: signs of zeros", [&] {
        const std::vector<float> a{0.0F, -0.0F, 0.0F, -0.0F, -1, 1}, b{1, 1, -1, -1, 0.0F, -0.0F};
        std::vector<float> expected;
        for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(a[i] * b[i]);
        return first_difference(apply<float>(arithmetic_kernel(device, "multiply"), a, b), expected,
                                describe_inputs(a, b));
    });
    e.check("f32: elements are copied bit for bit", [&] { return copied_bits(device); });
    e.fact("f32: denormals", [&] { return denormals(device); });
    e.check("vectors of 16, their parts and selection between them", [&] { return vectors(device); });
}

void examine_doubles(DoctorRun& e, const Device& device) {
    if (!device.info().fp64) return e.skip("f64", "the device does not report cl_khr_fp64");
    const auto [x, y, z] = operands<double>();
    e.check("f64: sums, products, quotients, square roots are rounded to nearest", [&] {
        std::string wrong = exactly<double>(
            arithmetic_kernel(device, "double_add"), [](double a, double b) { return a + b; }, x, y);
        if (wrong.empty())
            wrong = exactly<double>(
                arithmetic_kernel(device, "double_multiply"), [](double a, double b) { return a * b; }, x, y);
        if (wrong.empty())
            wrong = exactly<double>(
                arithmetic_kernel(device, "double_divide"), [](double a, double b) { return a / b; }, x, y);
        return wrong.empty() ? exactly<double>(
                                   arithmetic_kernel(device, "double_sqrt"), [](double a) { return std::sqrt(a); }, x)
                             : wrong;
    });
    e.check("f64: fma is fused, with a single rounding", [&] {
        return exactly<double>(
            arithmetic_kernel(device, "double_fma"), [](double a, double b, double c) { return std::fma(a, b, c); }, x,
            y, z);
    });
    e.check("f64 to f32, i64 and back", [&] {
        auto inner = x, ordered = x;
        std::erase_if(inner, [](double a) { return denormal(static_cast<float>(a)) || denormal(a); });
        std::erase_if(ordered, [](double a) { return std::isnan(a); });
        std::string wrong = converts<float>(arithmetic_kernel(device, "double_to_float"), inner,
                                            [](double a) { return static_cast<float>(a); });
        if (wrong.empty())
            wrong = converts<std::int64_t>(arithmetic_kernel(device, "double_to_long"), ordered,
                                           [](double a) { return saturated<std::int64_t>(a); });
        auto floats = operands<float>()[0];
        std::erase_if(floats, [](float a) { return denormal(a); });
        if (wrong.empty())
            wrong = converts<double>(arithmetic_kernel(device, "float_to_double"), floats,
                                     [](float a) { return double{a}; });
        return wrong.empty()
                   ? converts<double>(arithmetic_kernel(device, "long_to_double"), any_bits<std::int64_t>(kNumbers, 4),
                                      [](std::int64_t a) { return static_cast<double>(a); })
                   : wrong;
    });
}

}  // namespace

void examine_arithmetic(DoctorRun& e) {
    const Device device = e.device();
    examine_floats(e, device);
    examine_conversions(e, device);
    examine_reduced_precision(e, device);
    examine_doubles(e, device);
}

}  // namespace declivity::tools::doctor
