// The library's mathematical functions, compared with the host.
#include <bit>
#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <reference/math_cases.hpp>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

Kernel math_kernel(const Device& device, const std::string& name, bool f64, int vector) {
    Defines defines{{"REAL", f64 ? "double" : "float"}};
    if (f64) defines.set("REAL_IS_DOUBLE", 1);
    if (vector > 1) defines.set("VECTOR", vector);
    return Kernel(device, {"doctor_math.cl", "doctor_" + name, defines});
}

template <class Real>
std::vector<Real> run(const Device& device, const std::string& name, int vector, const std::vector<Real>& in) {
    const Buffer from = to_device(device, in), to(device, in.size() * sizeof(Real));
    const std::size_t element = sizeof(Real) * static_cast<std::size_t>(vector);
    launch(math_kernel(device, name, sizeof(Real) == 8, vector), {{in.size() / static_cast<std::size_t>(vector)}},
           {BufferArgument{from, 0, element}, BufferArgument{to, 0, element}});
    return to_host<Real>(to, in.size());
}

/// Describes the largest error beyond `allowed`, given by error(i).
template <class Error, class Describe>
std::string worst(std::size_t count, double allowed, Error&& error, Describe&& describe) {
    std::size_t at = 0;
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i)
        if (const double ulps = error(i); !(ulps <= largest)) largest = ulps, at = i;
    return largest <= allowed ? ""
                              : fmt::format("an error of {} ulps, allowed are {}: {}", largest, allowed, describe(at));
}

std::string pow_of_f32(const Device& device, int vector) {
    const auto [a, b] = reference::pow_arguments(1U << 14);
    const Buffer as = to_device(device, a), bs = to_device(device, b), to(device, a.size() * sizeof(float));
    const std::size_t element = sizeof(float) * static_cast<std::size_t>(vector);
    launch(math_kernel(device, "pow", false, vector), {{a.size() / static_cast<std::size_t>(vector)}},
           {BufferArgument{as, 0, element}, BufferArgument{bs, 0, element}, BufferArgument{to, 0, element}});
    const auto y = to_host<float>(to, a.size());
    // Structured bindings cannot be captured.
    const auto &left = a, &right = b;
    return worst(
        left.size(), reference::kPowUlps, [&](std::size_t i) { return reference::pow_error(left[i], right[i], y[i]); },
        [&](std::size_t i) { return fmt::format("for {:a} and {:a} the result is {:a}", left[i], right[i], y[i]); });
}

std::string finite_and_nan(const Device& device) {
    const std::vector<float> some{0, 1, FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN, std::bit_cast<float>(0xffc00001U)};
    return first_difference(apply<int>(math_kernel(device, "classify", false, 1), some),
                            std::vector<int>{1, 1, 1, 1, 0, 0, 2, 2}, describe_inputs(some));
}

}  // namespace

void examine_maths(DoctorRun& e) {
    const Device device = e.device();
    const auto x = reference::math_arguments(1U << 14);
    for (const reference::MathCase& test_case : reference::math_cases())
        for (const int vector : test_case.special ? std::vector{1} : std::vector{1, 16})
            e.check(fmt::format("{} of f32{}", test_case.name, vector > 1 ? ", 16 wide" : ""), [&] {
                const auto y = run(device, test_case.name, vector, x);
                return worst(
                    x.size(), test_case.allowed(device.info().type),
                    [&](std::size_t i) { return reference::math_error(test_case, x[i], y[i]); },
                    [&](std::size_t i) {
                        return fmt::format("for {:a} the result is {:a}, expected {:a}", x[i], y[i],
                                           test_case.reference(x[i]));
                    });
            });
    for (const int vector : {1, 16})
        e.check(fmt::format("pow of f32{}", vector > 1 ? ", 16 wide" : ""), [&] { return pow_of_f32(device, vector); });
    e.check("finite numbers and NaN are distinguished by their bits", [&] { return finite_and_nan(device); });
    if (!device.info().fp64) return e.skip("f64", "the device does not report cl_khr_fp64");
    std::vector<double> normal_values;
    for (const float value : x)
        if (std::abs(value) > FLT_MIN || value == 0 || std::isnan(value)) normal_values.push_back(value);
    for (const reference::MathCase& test_case : reference::math_cases())
        e.check(fmt::format("{} of f64", test_case.name), [&] {
            const auto y = run(device, test_case.name, 1, normal_values);
            return worst(
                normal_values.size(), reference::kMathUlpsF64,
                [&](std::size_t i) { return reference::math_error_f64(test_case, normal_values[i], y[i]); },
                [&](std::size_t i) {
                    return fmt::format("for {:a} the result is {:a}, expected {:a}", normal_values[i], y[i],
                                       test_case.reference(normal_values[i]));
                });
        });
}

}  // namespace declivity::tools::doctor
