// Layer 5. Reductions over any axes, and top-k.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <declivity/functions/elementwise.hpp>

namespace declivity {

/// @defgroup functions_reduce Reductions
/// @ingroup functions
/// Sums, means, extremes and norms over any axes, indices of extremes, and top-k.
///
/// - Axes: `axes` lists the axes to reduce, one number or several; negative ones count from the end; none stands for
///   all. The result has the shape of x without these axes, or with keep_axes size 1 along them.
/// - Types: the result has the type of x, unless stated otherwise. f16 and bf16 are accumulated in f32 and rounded
///   once.
/// - Values: NaN propagates, also through max() and min().
/// - Errors: ShapeError for an axis out of range or given twice; TypeError for types that a function does not support;
///   ValueError for an undefined tensor.
///
/// @{

/// Sum of the elements x[i]; 0 for no elements. i64 for bool and all integers except u64.
/// Examples: for x = `[[1, 2], [3, 4]]`, `sum(x)` is `10`; `sum(x, 0)` is `[4, 6]` (columns); `sum(x, 1)` is `[3, 7]`
/// (rows).
DECLIVITY_API Tensor sum(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Arithmetic mean, the sum of the elements divided by their number; NaN for no elements.
/// Examples: for x = `[[1, 2], [3, 6]]`, `mean(x)` is `3`; `mean(x, 0, true)` is `[[2, 4]]`.
/// @throws TypeError for integers and bool
DECLIVITY_API Tensor mean(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Largest element, of any type; equal ones share the gradient.
/// Examples: for x = `[[1, 5], [7, 2]]`, `max(x)` is `7`; `max(x, 1)` is `[5, 7]`.
/// @throws ShapeError for a maximum of no elements
DECLIVITY_API Tensor max(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Smallest element, of any type; equal ones share the gradient.
/// Examples: for x = `[[1, 5], [7, 2]]`, `min(x)` is `1`; `min(x, {0})` is `[1, 2]`.
/// @throws ShapeError for a minimum of no elements
DECLIVITY_API Tensor min(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// The same as maximum(a, b).
/// Examples: for a = `[1, 5]` and b = `[4, 2]`, `max(a, b)` is `[4, 5]`; `min(a, b)` is `[1, 2]`.
template <std::derived_from<Tensor> A, std::derived_from<Tensor> B>
Tensor max(const A& a, const B& b) {
    return maximum(a, b);
}
/// The same as minimum(a, b).
template <std::derived_from<Tensor> A, std::derived_from<Tensor> B>
Tensor min(const A& a, const B& b) {
    return minimum(a, b);
}
/// PyTorch's name of max() over axes.
/// Example: for x = `[[1, 5], [7, 2]]`, `amax(x, 0)` is `[7, 5]`.
DECLIVITY_API Tensor amax(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// PyTorch's name of min() over axes. Example: for x = `[[1, 5], [7, 2]]`, `amin(x, 0)` is `[1, 2]`.
DECLIVITY_API Tensor amin(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Results of aminmax().
struct MinMax {
    Tensor min, max;
};
inline std::vector<Tensor> tensors_of(const MinMax& both) { return {both.min, both.max}; }
/// min(x, ...) and max(x, ...) over the same axes.
/// Examples: for x = `[3, -1, 2]`, `aminmax(x).min` is `-1`; `aminmax(x).max` is `3`.
DECLIVITY_API MinMax aminmax(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Product of the elements; 1 for no elements. i64 for integers and bools.
/// Examples: for x = `[[1, 2], [3, 4]]`, `prod(x)` is `24`; `prod(x, 0)` is `[3, 8]`.
DECLIVITY_API Tensor prod(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Variance: the sum of the squared deviations from the mean, divided by n - correction; NaN or infinite if n <=
/// correction.
/// Examples: for x = `[1, 2, 3, 6]`, `var(x)` is `4.667`; `var(x, 0, 0)` is `3.5` (correction 0).
/// @throws TypeError for integers and bool
DECLIVITY_API Tensor var(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
/// Standard deviation, sqrt(var(x)), torch.std: a function named std would hide the namespace. The gradient is 0 if all
/// elements are equal. Example: for x = `[1, 2, 3, 6]`, `stddev(x)` is `2.16`.
/// @throws TypeError for integers and bool
DECLIVITY_API Tensor stddev(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
/// p-norm (sum |x|^p)^(1/p); the largest and smallest |x| for p of infinity and minus infinity, the number of nonzero
/// elements for 0. The gradient is 0 where the norm is 0.
/// Examples: for x = `[3, -4, 0]`, `norm(x)` is `5`; `norm(x, 1)` is `7`; `norm(x, 0)` is `2`; `norm(x, INFINITY)` is
/// `4`.
/// @throws TypeError for integers and bool; ValueError for a p of NaN; ShapeError for an infinite p and no elements
DECLIVITY_API Tensor norm(const Tensor& x, double p = 2, const Dims& axes = {}, bool keep_axes = false);
/// Deleted to require p before the axes: norm(x, 2, {1}).
Tensor norm(const Tensor& x, std::initializer_list<std::int64_t> axes) = delete;
/// log(sum(exp(x))), without overflow; minus infinity for no elements. Integers are computed in f32.
/// Example: for x = `[1000, 1000]`, `logsumexp(x)` is `1001`.
DECLIVITY_API Tensor logsumexp(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// True (bool) if all elements are not 0, also if there are none; NaN is not 0.
/// Example: for x = `[[1, 0], [2, 3]]`, `all(x, 1)` is `[false, true]`.
DECLIVITY_API Tensor all(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// True (bool) if any element is not 0, false if there are none; NaN is not 0.
/// Example: for x = `[[1, 0], [2, 3]]`, `any(x)` is `true`.
DECLIVITY_API Tensor any(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Number of elements that are not 0, in i64. Example: for x = `[[1, 0], [2, 3]]`, `count_nonzero(x, 0)` is `[2, 1]`.
DECLIVITY_API Tensor count_nonzero(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Index (i64) of the first largest element along one axis; NaN counts as the largest. Without gradient.
/// Examples: for x = `[[1, 7, 7], [3, 0, 2]]`, `argmax(x)` is `[1, 0]`; `argmax(x, 0)` is `[1, 0, 0]`.
/// @throws ShapeError for an axis out of range, or without elements
DECLIVITY_API Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);
/// Index (i64) of the first smallest element along one axis; NaN counts as the smallest. Without gradient.
/// Example: for x = `[[1, 7, 7], [3, 0, 2]]`, `argmin(x)` is `[0, 1]`.
/// @throws ShapeError for an axis out of range, or without elements
DECLIVITY_API Tensor argmin(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

/// Results of topk(): the shape of x, with k elements along the axis.
struct TopK {
    Tensor values;
    Tensor indices;  ///< i64, along the axis
};
/// The k largest elements along one axis, in descending order, or the k smallest in ascending order; of equal elements
/// the one with the lower index comes first, and NaN counts as the largest. x of any type. Gradients flow through the
/// values.
/// Examples: for x = `[4, 1, 9, 4]`, `topk(x, 3).values` is `[9, 4, 4]`; `topk(x, 3).indices` is `[2, 0, 3]`;
/// `topk(x, 1, -1, false).values` is `[1]`.
/// @throws ValueError unless k is in 0 .. n for n elements along the axis; ShapeError for an axis out of range
DECLIVITY_API TopK topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

/// @}

}  // namespace declivity
