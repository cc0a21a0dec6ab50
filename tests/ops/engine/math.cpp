// The functions of math.clh and philox.clh compared with references in double, over the whole range of their arguments.
#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <declivity/ops/philox.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <reference/math_cases.hpp>
#include <tests/support/values.hpp>
#include "tests/support/skip.hpp"
#include "tools/declivity/doctor_launch.hpp"

using namespace declivity;
using tools::doctor::to_device;
using tools::doctor::to_host;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
BufferArgument argument(const Buffer& buffer, int vector = 1) {
    return {buffer, 0, sizeof(T) * static_cast<std::size_t>(vector)};
}

Kernel kernel(const Device& device, const std::string& name, Defines defines) {
    return Kernel(device, {.file = "doctor_math.cl", .name = name, .defines = std::move(defines)});
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
    launch(kernel(device, "doctor_" + name, defines), {.global = {x.size() / static_cast<std::size_t>(vector), 1, 1}},
           {argument<Real>(in, vector), argument<Real>(out, vector)});
    return to_host<Real>(out, x.size());
}

/// Number of arguments of each kind.
std::uint32_t count() { return test::small_cases() ? 512 : 1U << 17; }

double unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

}  // namespace

TEST_CASE("math.clh: float functions are within their stated error bounds, scalar and vector") {
    const Device device = Device::best();
    const std::vector<float> x = test::math_arguments(count());
    for (const int vector : {1, 16}) {
        for (const test::MathCase& row : test::math_cases()) {
            if (row.special && vector > 1) continue;
            const std::vector<float> y = apply(device, row.name, x, vector);
            std::size_t worst = 0;
            double worst_error = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double e = test::math_error(row, x[i], y[i]);
                if (!(e <= worst_error)) worst_error = e, worst = i;
            }
            INFO(fmt::format("{} ({} wide) at {:a}: {:a}, expected {:a}", row.name, vector, x[worst], y[worst],
                             row.reference(x[worst])));
            CHECK(worst_error <= row.allowed(device.info().type));
        }
    }
}

TEST_CASE("math.clh: odd functions preserve the sign of zero") {
    const Device device = Device::best();
    for (const std::string name : {"expm1", "log1p", "tanh", "erf", "gelu", "silu", "sin", "tan", "asin", "atan",
                                   "sinh", "asinh", "atanh", "erfinv"}) {
        const auto y = apply<float>(device, name, {0.0F, -0.0F});
        INFO(name);
        CHECK(std::bit_cast<std::uint32_t>(y[0]) == 0);
        CHECK(std::bit_cast<std::uint32_t>(y[1]) == 0x80000000U);
    }
}

TEST_CASE("math.clh: double functions match the host's") {
    const Device device = Device::best();
    if (!device.info().fp64) return test::skip("the device has no fp64");
    std::vector<double> x;
    for (const float value : test::math_arguments(count()))
        if (std::abs(value) > FLT_MIN || value == 0 || std::isnan(value)) x.push_back(value);
    for (const test::MathCase& row : test::math_cases()) {
        const std::vector<double> y = apply(device, row.name, x);
        std::size_t worst = 0;
        double worst_error = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double e = test::math_error_f64(row, x[i], y[i]);
            if (!(e <= worst_error)) worst_error = e, worst = i;
        }
        INFO(fmt::format("{} at {:a}: {:a}, expected {:a}", row.name, x[worst], y[worst], row.reference(x[worst])));
        CHECK(worst_error <= test::kMathUlpsF64);
    }
}

TEST_CASE("math.clh: pow follows C's rules and its stated error bound") {
    const Device device = Device::best();
    const auto [x, y] = test::pow_arguments(test::small_cases() ? 1024 : 1U << 17);
    const Buffer xs = to_device(device, x), ys = to_device(device, y), zs(device, x.size() * sizeof(float));
    for (const int vector : {1, 16}) {
        Defines defines = defines_of<float>();
        if (vector > 1) defines.set("VECTOR", vector);
        launch(kernel(device, "doctor_pow", defines), {.global = {x.size() / static_cast<std::size_t>(vector), 1, 1}},
               {argument<float>(xs, vector), argument<float>(ys, vector), argument<float>(zs, vector)});
        const auto z = to_host<float>(zs, x.size());
        std::size_t worst = 0;
        double worst_error = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double e = test::pow_error(x[i], y[i], z[i]);
            if (!(e <= worst_error)) worst_error = e, worst = i;
        }
        INFO(fmt::format("pow({:a}, {:a}), {} wide: {:a}", x[worst], y[worst], vector, z[worst]));
        CHECK(worst_error <= test::kPowUlps);
    }
}

TEST_CASE("math.clh: finite numbers and NaN are distinguished by their bits") {
    const Device device = Device::best();
    const std::vector<float> x = {0,        1,         FLT_MAX, -FLT_MAX,
                                  INFINITY, -INFINITY, kNaN,    std::bit_cast<float>(0xffc00001U)};
    const Buffer in = to_device(device, x), out(device, x.size() * sizeof(int));
    launch(kernel(device, "doctor_classify", defines_of<float>()), {.global = {x.size(), 1, 1}},
           {argument<float>(in), argument<int>(out)});
    CHECK(to_host<int>(out, x.size()) == std::vector<int>{1, 1, 1, 1, 0, 0, 2, 2});
}

TEST_CASE("philox.clh: words and uniforms match the host's bit for bit, normals to 1e-6") {
    const Device device = Device::best();
    const std::size_t blocks = test::small_cases() ? 512 : 1U << 16;
    // The low half of the block number overflows within the range.
    const std::uint64_t first = 0x00000003ffffff00, stream = 0x0123456789abcdef, key = 0xfedcba9876543210;
    const Buffer buffer(device, blocks * 16);
    const auto run = [&](const char* name, const Defines& defines) {
        launch(kernel(device, name, defines), {.global = {blocks, 1, 1}},
               {first, stream, key, argument<float>(buffer)});
    };
    run("doctor_philox_words", defines_of<float>());
    const auto random_words = to_host<std::uint32_t>(buffer, 4 * blocks);
    const auto low_and_high = [](std::uint64_t v) {
        return std::array{static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(v >> 32)};
    };
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
        const auto block = low_and_high(first + i), s = low_and_high(stream);
        const auto expected = philox4x32_10({block[0], block[1], s[0], s[1]}, low_and_high(key));
        wrong += std::equal(expected.begin(), expected.end(), &random_words[4 * i]) ? 0 : 1;
    }
    CHECK(wrong == 0);

    run("doctor_philox_uniform", defines_of<float>());
    const auto uniforms = to_host<float>(buffer, 4 * blocks);
    for (std::size_t i = 0; i < random_words.size(); ++i) wrong += uniforms[i] == unit_uniform(random_words[i]) ? 0 : 1;
    CHECK(wrong == 0);

    run("doctor_philox_normal", defines_of<float>());
    const auto normals = to_host<float>(buffer, 4 * blocks);
    const double allowed = device.info().type == DeviceType::cpu ? 1e-6 : 3e-6;
    double worst = 0, sum = 0, squares = 0;
    for (std::size_t i = 0; i < random_words.size(); i += 2) {
        const double radius = std::sqrt(-2 * std::log(unit(random_words[i])));
        const double angle = 2 * std::numbers::pi * 0x1p-32 * random_words[i + 1];
        worst = std::max({worst, std::abs(normals[i] - radius * std::cos(angle)),
                          std::abs(normals[i + 1] - radius * std::sin(angle))});
        sum += normals[i] + normals[i + 1];
        squares += normals[i] * normals[i] + normals[i + 1] * normals[i + 1];
    }
    CHECK(worst <= allowed);
    const auto n = static_cast<double>(random_words.size());
    CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
    CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));

    if (!device.info().fp64) return;
    const auto unit53 = [&](std::size_t i) {
        return static_cast<double>((std::uint64_t{random_words[i + 1]} << 32 | random_words[i]) >> 11) * 0x1p-53;
    };
    run("doctor_philox_uniform", defines_of<double>());
    const auto doubles = to_host<double>(buffer, 2 * blocks);
    for (std::size_t i = 0; i < doubles.size(); ++i) wrong += doubles[i] == unit53(2 * i) ? 0 : 1;
    CHECK(wrong == 0);

    run("doctor_philox_normal", defines_of<double>());
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
