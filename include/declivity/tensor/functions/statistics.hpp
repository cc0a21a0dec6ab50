// Layer 3. Figures of data: moments, covariances, differences, integrals, comparisons within a tolerance. All are made
// of other functions. NaN counts as any number would, but where a name begins with nan.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// sum() and mean() of the elements that are no NaN: 0 and NaN where there is none. nanmean() wants floating numbers.
DECLIVITY_API Tensor nansum(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor nanmean(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);

/// A middle element, and where it stands along the axis.
struct NanMedian {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const NanMedian& both) { return {both.values, both.indices}; }
/// median() of the elements that are no NaN; NaN where there is none.
/// @throws ShapeError for an axis without elements
DECLIVITY_API NanMedian nanmedian(const Tensor& x, std::int64_t axis, bool keep_axis = false);
/// Of all elements, without axes.
DECLIVITY_API Tensor nanmedian(const Tensor& x);

/// var(x, ...) and mean(x, ...), the mean over the same axes.
struct VarMean {
    Tensor var, mean;
};
inline std::vector<Tensor> tensors_of(const VarMean& both) { return {both.var, both.mean}; }
DECLIVITY_API VarMean var_mean(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
/// stddev(x, ...) and mean(x, ...).
struct StdMean {
    Tensor std, mean;
};
inline std::vector<Tensor> tensors_of(const StdMean& both) { return {both.std, both.mean}; }
DECLIVITY_API StdMean std_mean(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);

/// Covariances of the rows of x (variables, observations): (variables, variables), or a number for one row, which may
/// be x (observations). The sums are divided by observations - correction, 0 where that is negative. Integers are
/// computed in f32.
/// @param fweights integers (observations): how often each observation counts; not looked at for negative ones
/// @param aweights floating numbers (observations): how much each counts
/// @throws ShapeError for more than two axes, or weights of another shape; TypeError for bool, or for other weights
DECLIVITY_API Tensor cov(const Tensor& x, std::int64_t correction = 1, const Tensor& fweights = {},
                         const Tensor& aweights = {});
/// cov(x) over the roots of both variances, within [-1, 1]: Pearson's correlations.
DECLIVITY_API Tensor corrcoef(const Tensor& x);

/// x, where each part x[i] along the axis has a p-norm of at most maxnorm: larger ones are scaled down.
/// @throws ShapeError for fewer than two axes, ValueError unless p > 0 and maxnorm >= 0
DECLIVITY_API Tensor renorm(const Tensor& x, double p, std::int64_t axis, double maxnorm);

/// x[i + 1] - x[i] along an axis, n times over, with `prepend` and `append` joined to x before; of bools whether they
/// differ. Of n elements or fewer nothing is left.
/// @throws ValueError for a negative n
DECLIVITY_API Tensor diff(const Tensor& x, std::int64_t n = 1, std::int64_t axis = -1, const Tensor& prepend = {},
                          const Tensor& append = {});
/// The integral of y along an axis by the trapezoidal rule: samples at a distance of dx, or at x, of y's shape, or (n)
/// or of fewer axes. Of integers in f32.
/// @throws TypeError for bool
DECLIVITY_API Tensor trapezoid(const Tensor& y, Scalar dx = 1, std::int64_t axis = -1);
DECLIVITY_API Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);
/// The same up to each sample but the first: one element less along the axis.
DECLIVITY_API Tensor cumulative_trapezoid(const Tensor& y, Scalar dx = 1, std::int64_t axis = -1);
DECLIVITY_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);

/// norm(a - b, p) of all elements; a and b broadcast.
DECLIVITY_API Tensor dist(const Tensor& a, const Tensor& b, double p = 2);
/// |a - b| <= atol + rtol |b| for each element, in bool; a and b broadcast, and are of one type. Equal ones are close,
/// infinities too; NaN to NaN with equal_nan alone. Of integers in f32.
/// @throws ValueError for a negative rtol or atol
DECLIVITY_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                             bool equal_nan = false);
/// Whether all are close. A bool of C++, for which it waits.
DECLIVITY_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                            bool equal_nan = false);
/// Whether each element is among test_elements, of any shape, or, with invert, is not. NaN equals nothing.
DECLIVITY_API Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert = false);

}  // namespace declivity
