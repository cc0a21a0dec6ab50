// Random inputs, reading tensors as double, and comparison with references. Shared by tests and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

/// Evenly distributed in [low, high), the same for the same seed everywhere.
std::vector<double> random_values(std::int64_t count, std::uint64_t seed, double low = -1, double high = 1);

/// A tensor of this type from doubles.
Tensor tensor(const std::vector<double>& values, const Shape& shape, DType dtype = DType::f32);
Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32, double low = -1,
                     double high = 1);
/// The elements of a tensor of any type as doubles.
std::vector<double> values(const Tensor& tensor);

/// The double as the type holds it: rounded to the nearest, or with the high bits dropped.
double as_type(double value, DType dtype);

/// Largest |actual - expected| allowed: absolute + relative * |expected|.
struct Tolerance {
    double absolute = 0;
    double relative = 0;
};
/// What f32 arithmetic of sums of about `terms` products may cost; for f64 next to nothing.
Tolerance tolerance(DType dtype, double terms = 1, double scale = 1);
/// And what sums of many products of numbers in [-1, 1) may cost, added one after the other: sums on the way grow like
/// sqrt(terms) and are rounded as many times, so that the largest error of many sums, which may end near 0, grows like
/// `terms`: 0.05 of them, in units of the last place of 1, are its standard deviation.
Tolerance sum_tolerance(DType dtype, double terms);

/// Empty when all are close (NaN equals NaN), otherwise a sentence about the worst element.
/// Use: CHECK(difference(actual, expected, tolerance) == "");
std::string difference(const std::vector<double>& actual, const std::vector<double>& expected,
                       const Tolerance& allowed);
std::string difference(const Tensor& actual, const std::vector<double>& expected, const Tolerance& allowed);

/// True when DECLIVITY_CASES=small: a slow checker runs the program, so leave large cases out.
bool small_cases();
/// DECLIVITY_CASES=all: tests that know of it run every combination, which takes many minutes.
bool all_cases();

}  // namespace declivity::test
