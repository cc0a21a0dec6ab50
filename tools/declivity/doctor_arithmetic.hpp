// Shared by the checks of arithmetic and conversions.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {

inline constexpr std::size_t kNumbers = 4096;  // random bit patterns

template <class T>
bool denormal(T x) {
    return x != 0 && std::abs(x) < std::numeric_limits<T>::min();
}

inline Kernel arithmetic_kernel(const Device& device, const std::string& name) {
    Defines defines;
    if (device.info().fp64) defines.set("HAS_DOUBLE", 1);
    return Kernel(device, {"doctor_arithmetic.cl", "doctor_" + name, defines});
}

template <class Out, class In, class Host>
std::string converts(const Kernel& kernel, const std::vector<In>& in, Host&& host) {
    std::vector<Out> expected;
    for (const In x : in) expected.push_back(host(x));
    return first_difference(apply<Out>(kernel, in), expected, describe_inputs(in));
}

template <class Whole, class Real>
Whole saturated(Real x) {
    if (std::isnan(x)) return 0;
    constexpr auto low = static_cast<Real>(std::numeric_limits<Whole>::min()),
                   high = static_cast<Real>(std::numeric_limits<Whole>::max());
    if (x <= low) return std::numeric_limits<Whole>::min();
    return x >= high ? std::numeric_limits<Whole>::max() : static_cast<Whole>(x);
}

void examine_conversions(DoctorRun& run, const Device& device);
void examine_reduced_precision(DoctorRun& run, const Device& device);

}  // namespace declivity::tools::doctor
