// Layer 5. Sorting, order statistics, unique elements, binary search, histograms.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/functions/shape.hpp>

namespace declivity {

/// @defgroup functions_sort Sorting, searching and counting
/// @ingroup functions
/// Sorting and order statistics along one axis, the last one by default; unique elements, binary search and histograms.
///
/// - Shapes: sorted tensors have the shape of x; a statistic has it without the axis, or with keep_axis size 1 along
///   it. A tensor without axes counts as one element.
/// - Types: values have the type of x; indices, inverses and counts of unique elements are i64.
/// - Values: NaN counts as the largest element.
/// - Gradients flow through sorted elements and order statistics, not through indices, unique elements, searches and
///   histograms.
/// - Errors: ShapeError for an axis out of range, or without elements for a statistic; TypeError for types that a
///   function does not support; ValueError for an undefined tensor.
///
/// @{

/// Elements along an axis in order, and their original indices.
struct Sorted {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const Sorted& both) { return {both.values, both.indices}; }

/// Sorts the elements along an axis, ascending or descending. Stable: equal elements keep their order.
/// Examples: for x = `[3, 1, nan, 1]`, `sort(x).values` is `[1, 1, 3, nan]`; `sort(x).indices` is `[1, 3, 0, 2]`;
/// `sort(x, 0, true).values` is `[nan, 3, 1, 1]`.
DECLIVITY_API Sorted sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// Indices of sort(): the position in x of each element of the sorted tensor.
/// Examples: for x = `[[3, 1, 2]]`, `argsort(x)` is `[[1, 2, 0]]`; `argsort(x, -1, true)` is `[[0, 2, 1]]`.
DECLIVITY_API Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// k-th smallest element along an axis, k from 1 on, and its index.
/// Examples: for x = `[30, 10, 20]`, `kthvalue(x, 2).values` is `20`; `kthvalue(x, 2).indices` is `2`.
/// @throws ValueError unless k is in 1 .. n for n elements along the axis
DECLIVITY_API Sorted kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keep_axis = false);
/// Median along an axis, the lower one of two middle elements, and its index; NaN if there is a NaN.
/// Examples: for x = `[[4, 1, 3, 2]]`, `median(x, 1).values` is `[2]`; `median(x, 1).indices` is `[3]`.
DECLIVITY_API Sorted median(const Tensor& x, std::int64_t axis, bool keep_axis = false);
/// Median of all elements, a tensor without axes; NaN if there is a NaN, or no element. Equal elements share the
/// gradient.
/// Example: for x = `[[4, 1], [3, 2]]`, `median(x)` is `2`.
/// @throws ShapeError for integers without elements
DECLIVITY_API Tensor median(const Tensor& x);
/// Quantile: the element at position q (n - 1) in sorted order, q in [0, 1], with `interpolation` "linear", "lower",
/// "higher", "nearest" or "midpoint" between two elements; NaN if there is a NaN. Exactly at the position of an element
/// it is that element, even next to an infinity, where PyTorch's "linear" and "midpoint" give NaN.
/// Examples: for x = `[1, 2, 4]`, `quantile(x, 0.75, 0)` is `3`; `quantile(x, 0.75, 0, false, "lower")` is `2`.
/// @throws TypeError for integers and bool; ValueError for a q outside of [0, 1], or another interpolation
DECLIVITY_API Tensor quantile(const Tensor& x, double q, std::int64_t axis, bool keep_axis = false,
                              std::string_view interpolation = "linear");
/// One quantile for each q, along a new leading axis.
/// Example: for x = `[[1, 2, 4]]` and q = `std::vector{0.25, 1.0}`, `quantile(x, q, 1)` is `[[1.5], [4]]`.
/// @throws ValueError for no q, and as quantile() of one q
DECLIVITY_API Tensor quantile(const Tensor& x, const std::vector<double>& q, std::int64_t axis, bool keep_axis = false,
                              std::string_view interpolation = "linear");
/// Linearly interpolated quantile of all elements, a tensor without axes.
/// Example: for x = `[[1, 2], [3, 4]]`, `quantile(x, 0.5)` is `2.5`.
inline Tensor quantile(const Tensor& x, double q) { return quantile(reshape(x, {-1}), q, 0); }
/// Most frequent element along an axis, the smallest of several, and the index of its last occurrence.
/// Examples: for x = `[7, 5, 5, 7]`, `mode(x).values` is `5`; `mode(x).indices` is `2`.
DECLIVITY_API Sorted mode(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

/// Unique elements in ascending order, the index into these for each element of x, and the number of occurrences.
struct Unique {
    Tensor values, inverse, counts;
};
inline std::vector<Tensor> tensors_of(const Unique& all) { return {all.values, all.inverse, all.counts}; }
/// Unique elements of x, flattened: values and counts (k), the inverse in the shape of x. Synchronises to count them.
/// NaN equals nothing, not even NaN.
/// Examples: for x = `[3, 1, 3]`, `unique(x).values` is `[1, 3]`; `unique(x).inverse` is `[1, 0, 1]`;
/// `unique(x).counts` is `[1, 2]`.
DECLIVITY_API Unique unique(const Tensor& x);
/// Unique slices of x along an axis, in lexicographic order; `inverse` is (n). Sorts once for each element of a slice.
/// Synchronises.
/// Examples: for x = `[[2, 1], [0, 5], [2, 1]]`, `unique(x, 0).values` is `[[0, 5], [2, 1]]`; `unique(x, 0).counts` is
/// `[1, 2]`.
DECLIVITY_API Unique unique(const Tensor& x, std::int64_t axis);
/// Elements of x, flattened, without consecutive duplicates, in the original order: values and counts (k), the inverse
/// in the shape of x. Synchronises.
/// Examples: for x = `[3, 3, 1, 3]`, `unique_consecutive(x).values` is `[3, 1, 3]`; `unique_consecutive(x).counts` is
/// `[2, 1, 1]`.
DECLIVITY_API Unique unique_consecutive(const Tensor& x);
/// Slices of x along an axis without consecutive duplicates, in the original order; `inverse` is (n). Synchronises.
DECLIVITY_API Unique unique_consecutive(const Tensor& x, std::int64_t axis);

/// Insertion index (i64) of each value in ascending rows, in the shape of the values: first position whose element is
/// not less than the value (`right`: greater than). Rows (..., n), values (..., m) with the same leading axes; or one
/// row (n) for values of any shape. The order of the rows is not checked.
/// Examples: for row = `[1, 3, 5]` and values = `[0, 3, 9]`, `searchsorted(row, values)` is `[0, 1, 3]`;
/// `searchsorted(row, values, true)` is `[0, 2, 3]`.
/// @throws ShapeError for other shapes; TypeError for types without a common one
DECLIVITY_API Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// searchsorted(boundaries, x, right) for boundaries (n).
/// Example: for x = `[[0.5, 1, 7]]` and boundaries = `[1, 2]`, `bucketize(x, boundaries)` is `[[0, 0, 2]]`.
/// @throws ShapeError for boundaries of more than one axis
DECLIVITY_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);
/// Number of elements in each of `bins` equal parts of [low, high], whose end belongs to the last; others, and NaN, are
/// not counted. If both are 0, the range is that of x, which synchronises. As torch.histc: (bins), in the floating type
/// of x.
/// Example: for x = `[0, 1, 1.5, 4]`, `histc(x, 4, 0, 4)` is `[1, 2, 0, 1]`.
/// @throws TypeError for integers and bool; ValueError for fewer than 1 bin, an invalid range, or an infinite element
/// or NaN in x if no range is given
DECLIVITY_API Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);

/// Options of histogram().
struct HistogramOptions {
    double low = 0, high = 0;  ///< range of the bins; both 0: the range of x, which synchronises
    Tensor weight = {};        ///< of each element of x, in its shape and type; undefined: 1
    bool density = false;      ///< divides counts by their sum and the widths of the bins
};
/// Results of histogram().
struct Histogram {
    Tensor counts;  ///< (bins)
    Tensor edges;   ///< (bins + 1), ascending
};
inline std::vector<Tensor> tensors_of(const Histogram& both) { return {both.counts, both.edges}; }
/// Number of elements of x, or the sum of their weights, in each bin, which includes its lower edge, and the last bin
/// also its upper edge. As torch.histogram, in x's type, f32 or f64. Without gradients.
/// Examples: for x = `[0, 1, 1.5, 4]`, `histogram(x, 2).counts` is `[3, 1]`; `histogram(x, 2).edges` is `[0, 2, 4]`;
/// `histogram(x, 2, {.density = true}).counts` is `[0.375, 0.125]`.
/// @throws ValueError for fewer than 1 bin, or an invalid range
/// @throws TypeError for other types; ShapeError for a weight of another shape than x
DECLIVITY_API Histogram histogram(const Tensor& x, std::int64_t bins, const HistogramOptions& options = {});
/// Histogram with edges (bins + 1) that must ascend, which is not checked; ignores the range of the options.
/// Example: for x = `[0, 1, 1.5, 4]` and edges = `[0, 1, 4]`, `histogram(x, edges).counts` is `[1, 3]`.
/// @throws ShapeError for fewer than 2 edges, several axes, or edges of another type than x
DECLIVITY_API Histogram histogram(const Tensor& x, const Tensor& edges, const HistogramOptions& options = {});

/// @}

}  // namespace declivity
