// Layer 3. Order: sorting, elements by rank, equal elements, places in sorted rows. NaN counts as the largest.
// Gradients flow through values. Indices are i64.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/functions/shape.hpp>

namespace declivity {

/// Elements along an axis in order, and where they stood.
struct Sorted {
    Tensor values, indices;
};
inline std::vector<Tensor> tensors_of(const Sorted& both) { return {both.values, both.indices}; }

/// Always stable: equal elements keep their order.
DECLIVITY_API Sorted sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
DECLIVITY_API Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// The k-th smallest along an axis, k from 1 on, and where it stands.
DECLIVITY_API Sorted kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keep_axis = false);
/// The one in the middle, of two the lower, and where it stands; NaN where there is one.
DECLIVITY_API Sorted median(const Tensor& x, std::int64_t axis, bool keep_axis = false);
/// Of all elements, without axes; NaN of none.
DECLIVITY_API Tensor median(const Tensor& x);
/// The element that stands at q (n - 1) in order, q in [0, 1]: between two by `interpolation`, "linear", "lower",
/// "higher", "nearest" or "midpoint"; NaN where there is one. At the very place of an element it is that element, also
/// beside an infinity, where PyTorch's "linear" and "midpoint" give NaN.
DECLIVITY_API Tensor quantile(const Tensor& x, double q, std::int64_t axis, bool keep_axis = false,
                              std::string_view interpolation = "linear");
/// For each q, along a new axis in front.
DECLIVITY_API Tensor quantile(const Tensor& x, const std::vector<double>& q, std::int64_t axis, bool keep_axis = false,
                              std::string_view interpolation = "linear");
/// Of all elements.
inline Tensor quantile(const Tensor& x, double q) { return quantile(reshape(x, {-1}), q, 0); }
/// The most frequent one, of several the smallest, and where it stands last.
DECLIVITY_API Sorted mode(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

/// The different elements in rising order, for each element of x which of them it is, and how often each stands there.
struct Unique {
    Tensor values, inverse, counts;
};
inline std::vector<Tensor> tensors_of(const Unique& all) { return {all.values, all.inverse, all.counts}; }
/// Reads how many there are, which waits. NaN equals nothing, not even NaN.
DECLIVITY_API Unique unique(const Tensor& x);
/// The different parts of x along an axis, in lexicographic order: `values` has as many there, `inverse` is (n).
/// Sorts once for each element of a part. Waits.
DECLIVITY_API Unique unique(const Tensor& x, std::int64_t axis);
/// Of equal neighbours the first, in the order in which they stand; of all elements in a row, or parts along an axis.
/// Waits.
DECLIVITY_API Unique unique_consecutive(const Tensor& x);
DECLIVITY_API Unique unique_consecutive(const Tensor& x, std::int64_t axis);

/// Where each value would be put into rows in rising order: the first place at which what stands there is not less than
/// it (with `right`, is larger). Rows (..., n), values (..., m) with the same axes in front; or one row (n) for values
/// of any shape.
DECLIVITY_API Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// searchsorted(boundaries, x, right).
DECLIVITY_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);
/// How many elements stand in each of `bins` equal parts of [low, high], whose end belongs to the last; of x's own
/// range where both are 0, which waits. As torch.histc, in x's type.
DECLIVITY_API Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);

struct HistogramOptions {
    double low = 0, high = 0;  ///< where the first bin begins and the last ends; both 0: the range of x, which waits
    Tensor weight = {};        ///< of each element of x, in its shape and type; undefined: 1
    bool density = false;      ///< counts divided by their sum and the widths of the bins
};
struct Histogram {
    Tensor counts;  ///< (bins)
    Tensor edges;   ///< (bins + 1), rising
};
inline std::vector<Tensor> tensors_of(const Histogram& both) { return {both.counts, both.edges}; }
/// How many elements of x, or how much of their weight, stand in each bin: from its edge up to the next, which belongs
/// to the next bin, or to the last. As torch.histogram, in x's type, f32 or f64. Without gradients.
/// @throws ValueError for fewer than 1 bin, or a range that is none
DECLIVITY_API Histogram histogram(const Tensor& x, std::int64_t bins, const HistogramOptions& options = {});
/// The same between edges (bins + 1) that rise, which is not looked at; the range among the options plays no part.
DECLIVITY_API Histogram histogram(const Tensor& x, const Tensor& edges, const HistogramOptions& options = {});

}  // namespace declivity
