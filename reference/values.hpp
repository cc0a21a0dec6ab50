// Random inputs, tensors as doubles, and comparison with references. Shared by tests and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity::reference {

/// Uniform in [low, high), reproducible for a seed.
std::vector<double> random_values(std::int64_t count, std::uint64_t seed, double low = -1, double high = 1);

/// A tensor of this type from doubles.
Tensor tensor(const std::vector<double>& values, const Shape& shape, DType dtype = DType::f32);
Tensor random_tensor(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32, double low = -1,
                     double high = 1);
/// A tensor of i64, for indices, labels and lengths.
Tensor int64_tensor(const std::vector<std::int64_t>& values, const Shape& shape);
/// The elements of a tensor of any type as doubles.
std::vector<double> values(const Tensor& tensor);

/// The value as stored in the type: rounded to nearest, or with the high bits dropped.
double as_type(double value, DType dtype);

/// Allowed |actual - expected|: absolute + relative * |expected|.
struct Tolerance {
    double absolute = 0;
    double relative = 0;
};
/// Expected error of sums of about `terms` products in f32 arithmetic; almost zero for f64.
Tolerance tolerance(DType dtype, double terms = 1, double scale = 1);
/// Expected error of sequential sums of many products of numbers in [-1, 1): partial sums grow like sqrt(terms) and are
/// rounded as many times, so that the largest error of many sums, which may end near 0, grows like `terms`: the
/// standard deviation is 0.05 * terms, in ulps of 1.
Tolerance sum_tolerance(DType dtype, double terms);

/// Returns an empty string if all are close (NaN equals NaN), otherwise a sentence about the worst element. Use:
/// CHECK(difference(actual, expected, tolerance) == "");
std::string difference(const std::vector<double>& actual, const std::vector<double>& expected,
                       const Tolerance& allowed);
std::string difference(const Tensor& actual, const std::vector<double>& expected, const Tolerance& allowed);

/// True with DECLIVITY_CASES=small: a slow checker runs the program, so skip large cases.
bool small_cases();
/// DECLIVITY_CASES=all: tests that support it run every combination, which takes many minutes.
bool all_cases();

}  // namespace declivity::reference
