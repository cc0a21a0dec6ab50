// Layer 5. Sorting, order statistics, unique elements, binary search, histograms. NaN counts as the largest. Gradients
// flow through values. Indices are i64.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/functions/shape.hpp>

namespace declivity {

/// Elements along an axis in order, and their original indices.
struct Sorted {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const Sorted& both) { return {both.values, both.indices}; }

/// Always stable: equal elements keep their order.
DECLIVITY_API Sorted sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
DECLIVITY_API Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// k-th smallest element along an axis, k from 1 on, and its index.
DECLIVITY_API Sorted kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keep_axis = false);
/// Median (the lower of two) and its index; NaN if there is a NaN.
DECLIVITY_API Sorted median(const Tensor& x, std::int64_t axis, bool keep_axis = false);
/// Median of all elements, without axes; NaN if there are none.
DECLIVITY_API Tensor median(const Tensor& x);
/// Quantile: the element at position q (n - 1) in sorted order, q in [0, 1], with `interpolation` "linear", "lower",
/// "higher", "nearest" or "midpoint" between two elements; NaN if there is a NaN. Exactly at the position of an element
/// it is that element, even next to an infinity, where PyTorch's "linear" and "midpoint" give NaN.
DECLIVITY_API Tensor quantile(const Tensor& x, double q, std::int64_t axis, bool keep_axis = false,
                              std::string_view interpolation = "linear");
/// One quantile for each q, along a new leading axis.
DECLIVITY_API Tensor quantile(const Tensor& x, const std::vector<double>& q, std::int64_t axis, bool keep_axis = false,
                              std::string_view interpolation = "linear");
/// Quantile of all elements.
inline Tensor quantile(const Tensor& x, double q) { return quantile(reshape(x, {-1}), q, 0); }
/// Most frequent element, the smallest of several, and the index of its last occurrence.
DECLIVITY_API Sorted mode(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

/// Unique elements in ascending order, the index into these for each element of x, and the number of occurrences.
struct Unique {
    Tensor values, inverse, counts;
};
inline std::vector<Tensor> tensors_of(const Unique& all) { return {all.values, all.inverse, all.counts}; }
/// Unique elements. Synchronises to count them. NaN equals nothing, not even NaN.
DECLIVITY_API Unique unique(const Tensor& x);
/// Unique slices of x along an axis, in lexicographic order; `inverse` is (n). Sorts once for each element of a slice.
/// Synchronises.
DECLIVITY_API Unique unique(const Tensor& x, std::int64_t axis);
/// Removes consecutive duplicates, in the original order: of all elements, flattened, or of slices along an axis.
/// Synchronises.
DECLIVITY_API Unique unique_consecutive(const Tensor& x);
DECLIVITY_API Unique unique_consecutive(const Tensor& x, std::int64_t axis);

/// Insertion index of each value in ascending rows: first position whose element is not less than the value (`right`:
/// greater than). Rows (..., n), values (..., m) with the same leading axes; or one row (n) for values of any shape.
DECLIVITY_API Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// searchsorted(boundaries, x, right).
DECLIVITY_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);
/// Number of elements in each of `bins` equal parts of [low, high], whose end belongs to the last; if both are 0, of
/// the range of x, which synchronises. As torch.histc, in x's type.
DECLIVITY_API Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);

struct HistogramOptions {
    double low = 0, high = 0;  ///< range of the bins; both 0: the range of x, which synchronises
    Tensor weight = {};        ///< of each element of x, in its shape and type; undefined: 1
    bool density = false;      ///< divides counts by their sum and the widths of the bins
};
struct Histogram {
    Tensor counts;  ///< (bins)
    Tensor edges;   ///< (bins + 1), ascending
};
inline std::vector<Tensor> tensors_of(const Histogram& both) { return {both.counts, both.edges}; }
/// Number of elements of x, or the sum of their weights, in each bin, which includes its lower edge, and the last bin
/// also its upper edge. As torch.histogram, in x's type, f32 or f64. Without gradients.
/// @throws ValueError for fewer than 1 bin, or an invalid range
DECLIVITY_API Histogram histogram(const Tensor& x, std::int64_t bins, const HistogramOptions& options = {});
/// Histogram with edges (bins + 1) that must ascend, which is not checked; ignores the range of the options.
DECLIVITY_API Histogram histogram(const Tensor& x, const Tensor& edges, const HistogramOptions& options = {});

}  // namespace declivity
