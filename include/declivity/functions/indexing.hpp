// Layer 5. Gather, scatter and index functions.
//
// Indices are tensors of integers, which count from 0; axes may be negative to count from the end. An index out of
// range cannot throw, since kernels run asynchronously: it reads NaN (0 from integers), and is not written. Elements
// that are added to one position are added in order, and of those that replace one another the last one is kept:
// results are bit-identical in every run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// y[i][j][k] = x[i][index[i][j][k]][k] for axis 1 of three, as torch.gather: index has as many axes as x, and is no
/// longer than x along the others; the result has its shape.
DECLIVITY_API Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index);
/// gather in which index and x broadcast along the other axes, and negative indices count from the end.
DECLIVITY_API Tensor take_along_axis(const Tensor& x, const Tensor& index, std::int64_t axis);
/// x with src[i][j][k] at [i][index[i][j][k]][k] for axis 1 of three. index has as many axes as x and src, and is no
/// longer than either along the others.
DECLIVITY_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src);
/// scatter of one number.
DECLIVITY_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);
/// scatter that adds to the elements of x.
DECLIVITY_API Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src);

/// Reduction of the elements scattered to one position.
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };
/// scatter with a reduction, which includes the element of x if include_self; positions without an index are unchanged.
/// The gradient of amax and amin is shared equally by all elements equal to the result. prod synchronises to read the
/// largest number of elements at one position.
DECLIVITY_API Tensor scatter_reduce(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src,
                                    ScatterReduction reduction, bool include_self = true);

/// Elements (rows, planes, ...) of an axis at these indices: index (N).
DECLIVITY_API Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index);
/// x plus alpha times the elements of `source`, added at these indices of the axis; index (N), source of the shape of
/// index_select(x, axis, index).
DECLIVITY_API Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                               Scalar alpha = 1);
/// x with the elements of `source` at these indices; shapes as for index_add.
DECLIVITY_API Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
/// x with a number, or a tensor without axes, at these indices.
DECLIVITY_API Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, const TensorOrScalar& value);
/// Elements of x, flattened, at these indices; the result has the shape of index.
DECLIVITY_API Tensor take(const Tensor& x, const Tensor& index);
/// x[index[..., 0], index[..., 1], ...], as ONNX's GatherND: index (..., K) indexes K leading axes of x.
DECLIVITY_API Tensor gather_nd(const Tensor& x, const Tensor& index);
/// Zeros of a shape, with `updates` added at index (..., K), as TensorFlow's scatter_nd: updates have the shape of
/// gather_nd(zeros(shape), index).
DECLIVITY_API Tensor scatter_nd(const Tensor& index, const Tensor& updates, const Shape& shape);

/// Advanced indexing x[index[0], index[1], ...] by tensors, which broadcast. An undefined tensor stands for a whole
/// axis, and a bool tensor of n axes for the positions where it is true in n axes of x (which synchronises to count
/// them). The axes of the indices replace the first indexed axis, or come first if other axes separate the indices, as
/// in NumPy. Negative indices count from the end.
DECLIVITY_API Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
/// x with values at these indices, or added to its elements; values broadcast to the shape of index(x, indices).
DECLIVITY_API Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                               bool accumulate = false);

/// x, broadcast with the mask, with a number, or a tensor without axes, where the mask is true.
DECLIVITY_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const TensorOrScalar& value);
/// Elements where the mask is true, as a vector. Synchronises to count them.
DECLIVITY_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with the elements of `source`, in order, where the mask is true; NaN (0 for integers) if there are too few.
DECLIVITY_API Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// Indices of the elements that are not 0, one per row: (N, axes of x), i64. Synchronises to count them.
DECLIVITY_API Tensor nonzero(const Tensor& x);
/// One-hot encoding: 1 at each label, otherwise 0: (..., num_classes), i64. Without a number of classes it synchronises
/// to read the largest label, and uses that plus one.
DECLIVITY_API Tensor one_hot(const Tensor& labels, std::int64_t num_classes = -1);
/// Number of occurrences of 0, 1, ... in integers x (N), or the sum of their weights, in the type of the weights; at
/// least `minlength` elements. Synchronises to read the largest.
DECLIVITY_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t minlength = 0);

}  // namespace declivity
