// Layer 5. Statistics, composed of other functions.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_statistics Statistics
/// @ingroup functions
/// Moments, covariances, differences, integrals, and comparisons within a tolerance. `axes`, keep_axes and their errors
/// are as in @ref functions_reduce. NaN propagates, except in functions whose name begins with nan. f16 and bf16 are
/// computed in f32 and rounded once.
///
/// Errors: ShapeError for an axis out of range, and for shapes that do not match; TypeError for types that a function
/// does not support; DeviceError for tensors on different devices; ValueError for an undefined tensor.
/// @{

/// sum() of the elements that are not NaN; 0 if there are none.
/// Example: for x = `[1, nan, 4]`, `nansum(x)` is `5`.
DECLIVITY_API Tensor nansum(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// mean() of the elements that are not NaN; NaN if there are none.
/// Example: for x = `[1, nan, 4]`, `nanmean(x)` is `2.5`.
/// @throws TypeError for integers and bool
DECLIVITY_API Tensor nanmean(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);

/// Results of nanmedian(): the median, and its index (i64) along the axis.
struct NanMedian {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const NanMedian& both) { return {both.values, both.indices}; }
/// median() along an axis of the elements that are not NaN, and its index; NaN if there are none.
/// Examples: for x = `[[5, nan, 1, 2]]`, `nanmedian(x, 1).values` is `[2]`; `nanmedian(x, 1).indices` is `[3]`.
/// @throws ShapeError for an axis without elements
DECLIVITY_API NanMedian nanmedian(const Tensor& x, std::int64_t axis, bool keep_axis = false);
/// median() of all elements that are not NaN, a tensor without axes; NaN if there are none.
/// Example: for x = `[5, nan, 1, 2]`, `nanmedian(x)` is `2`.
DECLIVITY_API Tensor nanmedian(const Tensor& x);

/// Results of var_mean().
struct VarMean {
    Tensor var, mean;
};
inline std::vector<Tensor> tensors_of(const VarMean& both) { return {both.var, both.mean}; }
/// var(x, ...) and mean(x, ...) over the same axes.
/// Examples: for x = `[1, 2, 3, 6]`, `var_mean(x).var` is `4.667`; `var_mean(x).mean` is `3`.
/// @throws TypeError for integers and bool
DECLIVITY_API VarMean var_mean(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
/// Results of std_mean().
struct StdMean {
    Tensor std, mean;
};
inline std::vector<Tensor> tensors_of(const StdMean& both) { return {both.std, both.mean}; }
/// stddev(x, ...) and mean(x, ...) over the same axes.
/// Examples: for x = `[1, 2, 3, 6]`, `std_mean(x).std` is `2.16`; `std_mean(x, 0, 0).std` is `1.871`.
/// @throws TypeError for integers and bool
DECLIVITY_API StdMean std_mean(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);

/// Covariance matrix of the rows of x (variables, observations): (variables, variables), or a number for one row, which
/// may be x (observations). The sums are divided by observations - correction, 0 if that is negative. Integers are
/// computed in f32.
/// Examples: for x = `[[0, 1, 2], [2, 1, 0]]` and i64 counts = `[2, 0, 1]`, `cov(x)` is `[[1, -1], [-1, 1]]`;
/// `cov(x, 0)` is `[[0.6667, -0.6667], [-0.6667, 0.6667]]`; `cov(x, 1, counts)` is
/// `[[1.333, -1.333], [-1.333, 1.333]]`.
/// @param fweights frequency weights, integers (observations); not checked for negative ones
/// @param aweights importance weights of a floating type (observations)
/// @throws ShapeError for more than two axes, or weights of another shape; TypeError for bool, or for other weights
DECLIVITY_API Tensor cov(const Tensor& x, std::int64_t correction = 1, const Tensor& fweights = {},
                         const Tensor& aweights = {});
/// Pearson correlation coefficients: cov(x) divided by both standard deviations, within [-1, 1].
/// Example: for x = `[[0, 1, 2], [8, 4, 0]]`, `corrcoef(x)` is `[[1, -1], [-1, 1]]`.
/// @throws ShapeError for more than two axes, TypeError for bool
DECLIVITY_API Tensor corrcoef(const Tensor& x);

/// x with each part x[i] along the axis scaled down to a p-norm of at most maxnorm.
/// Example: for x = `[[3, 4], [0, 1]]`, `renorm(x, 2, 0, 2)` is `[[1.2, 1.6], [0, 1]]`.
/// @throws ShapeError for fewer than two axes, ValueError unless p > 0 and maxnorm >= 0
DECLIVITY_API Tensor renorm(const Tensor& x, double p, std::int64_t axis, double maxnorm);

/// n-th difference x[i + 1] - x[i] along an axis, after joining `prepend` and `append` to x; for bools, true where they
/// differ. Empty for n elements or fewer.
/// Examples: for x = `[1, 4, 9, 16]`, `diff(x)` is `[3, 5, 7]`; `diff(x, 2)` is `[2, 2]`; `diff(x, 1, 0, zeros({1}))`
/// is `[1, 3, 5, 7]`.
/// @throws ValueError for a negative n
/// @throws ShapeError for x without axes, and for `prepend` or `append` of other sizes along the other axes
DECLIVITY_API Tensor diff(const Tensor& x, std::int64_t n = 1, std::int64_t axis = -1, const Tensor& prepend = {},
                          const Tensor& append = {});
/// Integral of y along an axis, which is removed, by the trapezoidal rule with the sample spacing dx. Integers are
/// computed in f32.
/// Examples: for y = `[1, 2, 4]` and x = `[0, 1, 3]`, `trapezoid(y)` is `4.5`; `trapezoid(y, x)` is `7.5`.
/// @throws TypeError for bool
DECLIVITY_API Tensor trapezoid(const Tensor& y, Scalar dx = 1, std::int64_t axis = -1);
/// trapezoid() with sample positions x, of the shape of y, or (n), or of fewer axes.
DECLIVITY_API Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);
/// Cumulative trapezoid() up to each sample except the first: one element less along the axis.
/// Examples: for y = `[1, 2, 4]`, `cumulative_trapezoid(y)` is `[1.5, 4.5]`; `cumulative_trapezoid(y, 2)` is `[3, 9]`.
/// @throws TypeError for bool
DECLIVITY_API Tensor cumulative_trapezoid(const Tensor& y, Scalar dx = 1, std::int64_t axis = -1);
/// cumulative_trapezoid() with sample positions x, as for trapezoid().
DECLIVITY_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);

/// norm(a - b, p) of all elements, a tensor without axes; a and b broadcast.
/// Examples: for a = `[0, 0]` and b = `[3, 4]`, `dist(a, b)` is `5`; `dist(a, b, 1)` is `7`.
/// @throws TypeError for integers and bool
DECLIVITY_API Tensor dist(const Tensor& a, const Tensor& b, double p = 2);
/// |a - b| <= atol + rtol |b| for each element, in bool; a and b broadcast, and have one type. Equal infinities are
/// close; NaN is close to NaN only with equal_nan. Integers are computed in f32.
/// Examples: for a = `[1, 1, nan, inf]` and b = `[1.000001, 1.1, nan, inf]`, `isclose(a, b)` is
/// `[true, false, false, true]`; `isclose(a, b, 0, 0.2, true)` is `[true, true, true, true]`.
/// @throws ValueError for a negative rtol or atol
/// @throws TypeError for a and b of different types
DECLIVITY_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                             bool equal_nan = false);
/// True if isclose() of all elements; a C++ bool, for which it synchronises.
/// Examples: for a = `[1, 2]` and b = `[1, 2.1]`, `allclose(a, b)` is `false`; `allclose(a, b, 0.1)` is `true`.
/// @throws ValueError, TypeError as isclose()
DECLIVITY_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                            bool equal_nan = false);
/// True (bool) for each element that is among test_elements, of any shape, or, with invert, that is not. NaN equals
/// nothing.
/// Examples: for x = `[[1, 2], [3, 4]]` and set = `[2, 4, 9]`, `isin(x, set)` is `[[false, true], [false, true]]`;
/// `isin(x, set, true)` is `[[true, false], [true, false]]`.
DECLIVITY_API Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert = false);

/// @}

}  // namespace declivity
