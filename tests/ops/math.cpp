// The functions of math.clh and philox.clh against references in double, over the whole range of their arguments.
#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include <declivity/ops/philox.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/paths.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/values.hpp"

using namespace declivity;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// With the factor of math.clh: its rounding is magnified in the tail, and is not what the test is about.
double big_phi(double x) { return 0.5 * std::erfc(-0.70710678118654752440 * x); }
double small_phi(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }
double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
// 0 times infinity is 0 here: the functions take the limit.
double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

struct Row {
    const char* name;
    double (*reference)(double);
    double ulps;          ///< as stated in math.clh, for float
    double absolute = 0;  ///< allowed besides
    int divisions = 0;    ///< divisions and square roots, which a device other than a CPU may round worse
};

const Row kRows[] = {
    {"exp", [](double x) { return std::exp(x); }, 1},
    {"expm1", [](double x) { return std::expm1(x); }, 1.5},
    {"log", [](double x) { return std::log(x); }, 1},
    {"log1p", [](double x) { return std::log1p(x); }, 1.5},
    {"tanh", [](double x) { return std::tanh(x); }, 2.5, 0, 1},
    {"sigmoid", sigmoid, 2.5, 0, 1},
    {"silu", [](double x) { return product(x, sigmoid(x)); }, 3.5, 2e-36, 1},
    {"softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 2},
    {"erf", [](double x) { return std::erf(x); }, 1.2},
    {"erfc", [](double x) { return std::erfc(x); }, 7, 0, 1},
    {"gelu", [](double x) { return product(x, big_phi(x)); }, 7, 0, 1},
    {"gelu_gradient", [](double x) { return big_phi(x) + product(x, small_phi(x)); }, 0, 3e-7, 1},
    {"sqrt", [](double x) { return std::sqrt(x); }, 0.5, 0, 1},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1.5, 0, 2},
};

template <class Real>
double ulp(double x) {
    using Limits = std::numeric_limits<Real>;
    if (std::abs(x) < Limits::min()) return Limits::denorm_min();
    if (std::abs(x) > Limits::max()) x = Limits::max();
    return std::ldexp(1.0, std::ilogb(x) + 1 - Limits::digits);
}

/// Ulps beyond `absolute`; infinite where NaN, infinity or range are wrong.
template <class Real>
double error(Real actual, double expected, double absolute) {
    const auto nearest = static_cast<Real>(expected);
    if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) == std::isnan(actual) ? 0 : kInfinity;
    if (std::isinf(nearest) || std::isinf(actual)) {
        const bool borders =
            std::abs(expected) > std::numeric_limits<Real>::max() * (1 - 1e-6) && !std::isinf(expected);
        return actual == nearest || borders ? 0 : kInfinity;
    }
    // What is below the smallest normal number, or whose parts are, may flush or lose digits.
    if (std::abs(expected) < 4 * std::numeric_limits<Real>::min()) absolute += 4 * std::numeric_limits<Real>::min();
    return std::max(0.0, std::abs(static_cast<double>(actual) - expected) - absolute) / ulp<Real>(expected);
}

/// May the device take x for zero?
template <class Real>
bool flushes(Real x) {
    return x != 0 && std::abs(x) < std::numeric_limits<Real>::min();
}

template <class T>
Buffer to_device(const Device& device, const std::vector<T>& values) {
    Buffer buffer(device, values.size() * sizeof(T));
    upload(buffer, 0, std::as_bytes(std::span(values)));
    return buffer;
}

template <class T>
std::vector<T> to_host(const Buffer& buffer, std::size_t count) {
    std::vector<T> values(count);
    read(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

template <class T>
BufferArgument argument(const Buffer& buffer, int vector = 1) {
    return {&buffer, 0, sizeof(T) * static_cast<std::size_t>(vector)};
}

Kernel kernel(const Device& device, const std::string& name, Defines defines) {
    const auto file = test::source_folder() / "ops" / "math_sweep.cl";
    return Kernel(device, {.file = file.string(), .name = name, .defines = std::move(defines)});
}

template <class Real>
Defines defines_of() {
    if constexpr (sizeof(Real) == 8) return {{"REAL", "double"}, {"REAL_IS_DOUBLE", "1"}};
    return {{"REAL", "float"}};
}

template <class Real>
std::vector<Real> apply(const Device& device, const std::string& name, const std::vector<Real>& x, int vector = 1) {
    Defines defines = defines_of<Real>();
    if (vector > 1) defines.set("VECTOR", vector);
    const Buffer in = to_device(device, x), out(device, x.size() * sizeof(Real));
    launch(kernel(device, "math_sweep_" + name, defines),
           {.global = {x.size() / static_cast<std::size_t>(vector), 1, 1}},
           {argument<Real>(in, vector), argument<Real>(out, vector)});
    return to_host<Real>(out, x.size());
}

/// Special values, bit patterns spread over all there are, and numbers where the functions bend. A multiple of 16.
std::vector<float> arguments() {
    const auto f = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
    std::vector<float> x = {0.0F,
                            -0.0F,
                            1,
                            -1,
                            INFINITY,
                            -INFINITY,
                            kNaN,
                            -kNaN,
                            f(0x7fffffff),
                            f(0xffc00fff),
                            FLT_MIN,
                            -FLT_MIN,
                            FLT_TRUE_MIN,
                            -FLT_TRUE_MIN,
                            FLT_MAX,
                            -FLT_MAX,
                            88.72283F,
                            88.72284F,
                            89,
                            -87.3365F,
                            -87.33655F,
                            -103.9F,
                            -105,
                            0.9375F,
                            4,
                            -0.75179F,
                            10,
                            10.2F,
                            14.4F,
                            -14.4F,
                            1.0e-4F,
                            -1.0e-4F};
    const std::uint32_t count = test::small_cases() ? 512 : 1U << 17;
    const std::uint32_t stride = (0xffffffffU / count) | 1U;
    for (std::uint32_t i = 0; i < count; ++i) x.push_back(f(i * stride + (i * 2654435761U) % stride));
    for (std::uint32_t i = 0; i < count; ++i) x.push_back(-20 + 40 * static_cast<float>(i) / static_cast<float>(count));
    for (std::uint32_t i = 0; i < count; ++i) x.push_back(0.5F + static_cast<float>(i) / static_cast<float>(count));
    return x;
}

double unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

}  // namespace

TEST_CASE("math.clh: float functions keep their stated bounds, scalar and in vectors") {
    const Device device = Device::best();
    const std::vector<float> x = arguments();
    for (const int vector : {1, 16}) {
        for (const Row& row : kRows) {
            const std::vector<float> y = apply(device, row.name, x, vector);
            const double allowed = row.ulps + (device.info().type == DeviceType::cpu ? 0 : 3 * row.divisions);
            std::size_t worst = 0;
            double worst_error = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                double e = error(y[i], row.reference(x[i]), row.absolute);
                if (flushes(x[i])) e = std::min(e, error(y[i], row.reference(std::copysign(0.0, x[i])), 0));
                if (!(e <= worst_error)) worst_error = e, worst = i;
            }
            INFO(fmt::format("{} ({} wide) at {:a}: {:a}, expected {:a}", row.name, vector, x[worst], y[worst],
                             row.reference(x[worst])));
            CHECK(worst_error <= allowed);
        }
    }
}

TEST_CASE("math.clh: odd functions keep the sign of zero") {
    const Device device = Device::best();
    for (const std::string name : {"expm1", "log1p", "tanh", "erf", "gelu", "silu"}) {
        const auto y = apply<float>(device, name, {0.0F, -0.0F});
        INFO(name);
        CHECK(std::bit_cast<std::uint32_t>(y[0]) == 0);
        CHECK(std::bit_cast<std::uint32_t>(y[1]) == 0x80000000U);
    }
}

TEST_CASE("math.clh: double functions agree with the host's") {
    const Device device = Device::best();
    if (!device.info().fp64) return test::skip("the device has no fp64");
    std::vector<double> x;
    for (const float value : arguments())
        if (std::abs(value) > FLT_MIN || value == 0 || std::isnan(value)) x.push_back(value);
    for (const Row& row : kRows) {
        const std::vector<double> y = apply(device, row.name, x);
        std::size_t worst = 0;
        double worst_error = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double e = error(y[i], row.reference(x[i]), row.absolute == 0 ? 1e-290 : 2e-15);
            if (!(e <= worst_error)) worst_error = e, worst = i;
        }
        INFO(fmt::format("{} at {:a}: {:a}, expected {:a}", row.name, x[worst], y[worst], row.reference(x[worst])));
        CHECK(worst_error <= 64);
    }
}

TEST_CASE("math.clh: pow follows C's rules and its stated bound") {
    const Device device = Device::best();
    const std::vector<float> special = {0.0F,   -0.0F,   1,    -1,    INFINITY,   -INFINITY,   kNaN,     2,
                                        -2,     3,       -3,   0.5F,  -0.5F,      16777216,    -8388607, 1e30F,
                                        -1e30F, FLT_MAX, 1.5F, -2.5F, 1.0000001F, 0.99999994F, 1e-30F};
    std::vector<float> x, y;
    for (const float a : special)
        for (const float b : special) x.push_back(a), y.push_back(b);
    const std::uint32_t count = test::small_cases() ? 1024 : 1U << 17;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto w = philox4x32_10({i, 0, 0, 0}, {1, 2});
        const auto any = std::bit_cast<float>(w[0]);
        const double result = 200 * unit(w[1]) - 105;  // the logarithm of the result to aim at
        switch (i % 4) {
            case 0:
                x.push_back(any), y.push_back(std::bit_cast<float>(w[2]));
                break;
            case 1:
                x.push_back(std::abs(any)), y.push_back(static_cast<float>(result / std::log(std::abs(any))));
                break;
            case 2:
                x.push_back(static_cast<float>(1 + (i % 8 == 2 ? 1e-3 : 1) * (unit(w[3]) - 0.5)));
                y.push_back(static_cast<float>(result / std::log(x.back())));
                break;
            default:
                x.push_back(static_cast<float>(20 * unit(w[2]) - 10)), y.push_back(static_cast<float>(w[3] % 60) - 30);
        }
    }
    while (x.size() % 16 != 0) x.push_back(2), y.push_back(2);

    const Buffer xs = to_device(device, x), ys = to_device(device, y), zs(device, x.size() * sizeof(float));
    for (const int vector : {1, 16}) {
        Defines defines = defines_of<float>();
        if (vector > 1) defines.set("VECTOR", vector);
        launch(kernel(device, "math_sweep_pow", defines),
               {.global = {x.size() / static_cast<std::size_t>(vector), 1, 1}},
               {argument<float>(xs, vector), argument<float>(ys, vector), argument<float>(zs, vector)});
        const auto z = to_host<float>(zs, x.size());
        std::size_t worst = 0;
        double worst_error = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (flushes(x[i]) || flushes(y[i])) continue;
            const double expected = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
            double e = error(z[i], expected, 0);
            if (expected == 0 && !std::isnan(z[i]) && std::signbit(expected) != std::signbit(z[i])) e = kInfinity;
            if (!(e <= worst_error)) worst_error = e, worst = i;
        }
        INFO(fmt::format("pow({:a}, {:a}), {} wide: {:a}", x[worst], y[worst], vector, z[worst]));
        CHECK(worst_error <= 1.5);
    }
}

TEST_CASE("math.clh: finite and NaN are told apart by bits") {
    const Device device = Device::best();
    const std::vector<float> x = {0,        1,         FLT_MAX, -FLT_MAX,
                                  INFINITY, -INFINITY, kNaN,    std::bit_cast<float>(0xffc00001U)};
    const Buffer in = to_device(device, x), out(device, x.size() * sizeof(int));
    launch(kernel(device, "math_sweep_classify", defines_of<float>()), {.global = {x.size(), 1, 1}},
           {argument<float>(in), argument<int>(out)});
    CHECK(to_host<int>(out, x.size()) == std::vector<int>{1, 1, 1, 1, 0, 0, 2, 2});
}

TEST_CASE("philox.clh: words equal the host's, uniforms to the bit, normals to 1e-6") {
    const Device device = Device::best();
    const std::size_t blocks = test::small_cases() ? 512 : 1U << 16;
    // The low half of the block number overflows on the way.
    const std::uint64_t first = 0x00000003ffffff00, stream = 0x0123456789abcdef, key = 0xfedcba9876543210;
    const Buffer buffer(device, blocks * 16);
    const auto run = [&](const char* name, const Defines& defines) {
        launch(kernel(device, name, defines), {.global = {blocks, 1, 1}},
               {first, stream, key, argument<float>(buffer)});
    };
    run("philox_words", defines_of<float>());
    const auto words = to_host<std::uint32_t>(buffer, 4 * blocks);
    const auto halves = [](std::uint64_t v) {
        return std::array{static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(v >> 32)};
    };
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
        const auto block = halves(first + i), s = halves(stream);
        const auto expected = philox4x32_10({block[0], block[1], s[0], s[1]}, halves(key));
        wrong += std::equal(expected.begin(), expected.end(), &words[4 * i]) ? 0 : 1;
    }
    CHECK(wrong == 0);

    run("philox_uniform", defines_of<float>());
    const auto uniforms = to_host<float>(buffer, 4 * blocks);
    for (std::size_t i = 0; i < words.size(); ++i) wrong += uniforms[i] == unit_uniform(words[i]) ? 0 : 1;
    CHECK(wrong == 0);

    run("philox_normal", defines_of<float>());
    const auto normals = to_host<float>(buffer, 4 * blocks);
    const double allowed = device.info().type == DeviceType::cpu ? 1e-6 : 3e-6;
    double worst = 0, sum = 0, squares = 0;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const double radius = std::sqrt(-2 * std::log(unit(words[i])));
        const double angle = 2 * std::numbers::pi * 0x1p-32 * words[i + 1];
        worst = std::max({worst, std::abs(normals[i] - radius * std::cos(angle)),
                          std::abs(normals[i + 1] - radius * std::sin(angle))});
        sum += normals[i] + normals[i + 1];
        squares += normals[i] * normals[i] + normals[i + 1] * normals[i + 1];
    }
    CHECK(worst <= allowed);
    const auto n = static_cast<double>(words.size());
    CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
    CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));

    if (!device.info().fp64) return;
    const auto unit53 = [&](std::size_t i) {
        return static_cast<double>((std::uint64_t{words[i + 1]} << 32 | words[i]) >> 11) * 0x1p-53;
    };
    run("philox_uniform", defines_of<double>());
    const auto doubles = to_host<double>(buffer, 2 * blocks);
    for (std::size_t i = 0; i < doubles.size(); ++i) wrong += doubles[i] == unit53(2 * i) ? 0 : 1;
    CHECK(wrong == 0);

    run("philox_normal", defines_of<double>());
    const auto double_normals = to_host<double>(buffer, 2 * blocks);
    worst = 0;
    for (std::size_t i = 0; i < doubles.size(); i += 2) {
        const double radius = std::sqrt(-2 * std::log(unit53(2 * i) + 0x1p-54));
        const double angle = 2 * std::numbers::pi * unit53(2 * i + 2);
        worst = std::max({worst, std::abs(double_normals[i] - radius * std::cos(angle)),
                          std::abs(double_normals[i + 1] - radius * std::sin(angle))});
    }
    CHECK(worst <= 1e-14);
}
