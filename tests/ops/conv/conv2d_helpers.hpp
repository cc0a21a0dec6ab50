// Helpers of the tests of conv2d.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <doctest/doctest.h>
#include <reference/conv2d_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::test {

using ops::Conv2dDirection;

inline bool has(DType dtype) { return dtype != DType::f64 || default_device().info().fp64; }

/// An unwritten output: a kernel that omits elements shows.
inline Tensor unwritten(const Shape& shape, DType dtype) {
    return Tensor(ops::View::make(default_device(), dtype, shape)).fill_(std::numeric_limits<double>::quiet_NaN());
}

inline ops::Conv2dProblem problem_of(const Conv2dCase& c, DType dtype, KernelStyle style, Conv2dDirection direction) {
    return ops::conv2d_problem("test", direction, dtype, style, c.x, c.weight, c.options);
}

/// Random operands of a case, and the expected result of each direction.
struct Filled {
    const Conv2dCase& c;
    DType dtype;
    Tensor x = random_tensor(c.x, 1, dtype), weight = random_tensor(c.weight, 2, dtype),
           bias = random_tensor({c.weight[0]}, 3, dtype);
    Tensor gradient = random_tensor(c.out(), 4, dtype);
    std::vector<double> out = conv2d_reference(c, values(x), values(weight), {});
    std::vector<double> biased_out = conv2d_reference(c, values(x), values(weight), values(bias));
    std::vector<double> dx = conv2d_backward_input_reference(c, values(gradient), values(weight));
    std::vector<double> dweight = conv2d_backward_weights_reference(c, values(x), values(gradient));
    std::vector<double> dbias = conv2d_backward_bias_reference(c, values(gradient));
};

template <class Visit>
void for_each_case(Visit visit) {
    for (const Conv2dCase& c : conv2d_cases())
        for (const DType dtype : floats()) {
            if (!has(dtype) || (small_cases() && (!c.small || c.flops() > (dtype == DType::f32 ? 3000 : 600))))
                continue;
            CAPTURE(c.name);
            CAPTURE(name_of(dtype));
            visit(Filled{c, dtype});
        }
}

/// Describes what is wrong with a result of `strategy`, whose error may be relative to the norm of the result.
inline std::string wrong_by(const ops::Conv2dStrategy& strategy, DType dtype, const Tensor& result,
                            const std::vector<double>& expected, const Tolerance& allowed) {
    if (!strategy.error_is_relative_to_norm()) return difference(result, expected, allowed);
    double error = 0, norm = 0;
    const std::vector<double> got = values(result);
    for (std::size_t i = 0; i < got.size(); ++i) {
        error += (got[i] - expected[i]) * (got[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    const double tolerance_of_norm = dtype == DType::f32 ? 1e-5 : 1e-14;
    return std::sqrt(error) <= tolerance_of_norm * std::sqrt(norm)
               ? std::string()
               : fmt::format("an error of {} relative to the norm", std::sqrt(error / norm));
}

}  // namespace declivity::test
