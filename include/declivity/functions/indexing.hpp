// Layer 5. Gather, scatter and index functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_indexing Indexing, gather and scatter
/// @ingroup functions
/// Reading and writing elements by tensors of indices or by masks.
///
/// - Indices are tensors of integers of any type, which count from 0; negative ones count from the end only where it is
///   stated. Axes may be negative to count from the end.
/// - Masks are bool, and broadcast with x, unless stated otherwise.
/// - Types: x is of any type, which is that of the result; scatter_add(), scatter_reduce(), scatter_nd() and
///   index_add() take floating types and integers. Elements to be written (src, source, values) have the type of x;
///   numbers and tensors without axes are converted to it.
/// - Values: an index out of range cannot throw, since kernels run asynchronously: it reads NaN (0 from integers), and
///   is not written. Elements that are added to one position are added in order, and of those that replace one another
///   the last one is kept: results are bit-identical in every run.
/// - Gradients flow to x and to the written elements, not to indices and masks.
/// - Errors: ShapeError for an axis out of range, and for shapes that do not match; TypeError for indices that are not
///   integers, masks that are not bool, and written elements of another type than x; DeviceError for tensors on
///   different devices; ValueError for an undefined tensor.
///
/// @{

/// y[i][j][k] = x[i][index[i][j][k]][k] for axis 1 of three, as torch.gather: index has as many axes as x, and is no
/// longer than x along the others; the result has its shape.
/// Example: for x = `[[1, 2], [3, 4]]` and i64 i = `[[1], [0]]`, `gather(x, 1, i)` is `[[2], [3]]`.
DECLIVITY_API Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index);
/// gather() in which index and x broadcast along the other axes, and negative indices count from the end.
/// Example: for x = `[[1, 2], [3, 4]]` and i64 i = `[[-1, 0]]`, `take_along_axis(x, i, 1)` is `[[2, 1], [4, 3]]`.
DECLIVITY_API Tensor take_along_axis(const Tensor& x, const Tensor& index, std::int64_t axis);
/// x with src[i][j][k] at [i][index[i][j][k]][k] for axis 1 of three. index has as many axes as x and src, and is no
/// longer than either along the others.
/// Example: for x = `[0, 0, 0]`, i64 i = `[2, 0, 2]` and src = `[5, 6, 7]`, `scatter(x, 0, i, src)` is `[6, 0, 7]` (the
/// last of two).
DECLIVITY_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src);
/// scatter() of one number, which is converted to the type of x.
/// Example: for x = `[[0, 0], [0, 0]]` and i64 i = `[[1], [0]]`, `scatter(x, 1, i, 9)` is `[[0, 9], [9, 0]]`.
DECLIVITY_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);
/// scatter() that adds the elements of src to those of x.
/// Example: for x = `[1, 1, 1]`, i64 i = `[2, 0, 2]` and src = `[5, 6, 7]`, `scatter_add(x, 0, i, src)` is
/// `[7, 1, 13]`.
DECLIVITY_API Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src);

/// Reduction of the elements scattered to one position.
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };
/// scatter() with a reduction, which includes the element of x if include_self; positions without an index are
/// unchanged. The gradient of amax and amin is shared equally by all elements equal to the result. prod synchronises to
/// read the largest number of elements at one position.
/// Examples: for x = `[9, 1]`, i64 i = `[0, 0]` and src = `[5, 6]`,
/// `scatter_reduce(x, 0, i, src, ScatterReduction::amax)` is `[9, 1]`;
/// `scatter_reduce(x, 0, i, src, ScatterReduction::mean, false)` is `[5.5, 1]`.
DECLIVITY_API Tensor scatter_reduce(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src,
                                    ScatterReduction reduction, bool include_self = true);

/// Elements (rows, planes, ...) of an axis at these indices: index (N).
/// Example: for x = `[[1, 2], [3, 4]]` and i64 i = `[1, 1, 0]`, `index_select(x, 1, i)` is `[[2, 2, 1], [4, 4, 3]]`.
DECLIVITY_API Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index);
/// x plus alpha times the elements of `source`, added at these indices of the axis; index (N), source of the shape of
/// index_select(x, axis, index).
/// Examples: for x = `[1, 2]`, i64 i = `[1, 1]` and source = `[10, 20]`, `index_add(x, 0, i, source)` is `[1, 32]`;
/// `index_add(x, 0, i, source, -1)` is `[1, -28]`.
DECLIVITY_API Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                               Scalar alpha = 1);
/// x with the elements of `source` at these indices of the axis; shapes as for index_add().
/// Example: for x = `[1, 2, 3]`, i64 i = `[2, 0]` and source = `[8, 9]`, `index_copy(x, 0, i, source)` is `[9, 2, 8]`.
DECLIVITY_API Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
/// x with a number, or a tensor without axes, at these indices of the axis; index (N).
/// Example: for x = `[[1, 2], [3, 4]]` and i64 i = `[0]`, `index_fill(x, 1, i, 9)` is `[[9, 2], [9, 4]]`.
DECLIVITY_API Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, const TensorOrScalar& value);
/// Elements of x, flattened, at these indices, of which negative ones count from the end; the result has the shape of
/// index.
/// Example: for x = `[[1, 2], [3, 4]]` and i64 i = `[[3, 0]]`, `take(x, i)` is `[[4, 1]]`.
DECLIVITY_API Tensor take(const Tensor& x, const Tensor& index);
/// x[index[..., 0], index[..., 1], ...], as ONNX's GatherND: index (..., K) indexes K leading axes of x: (...,
/// remaining axes of x). Negative indices count from the end.
/// Examples: for x = `[[1, 2], [3, 4]]`, i64 i = `[[0, 1], [1, 0]]` and i64 row = `[1]`, `gather_nd(x, i)` is `[2, 3]`;
/// `gather_nd(x, row)` is `[3, 4]`.
DECLIVITY_API Tensor gather_nd(const Tensor& x, const Tensor& index);
/// Zeros of a shape, with `updates` added at index (..., K), as TensorFlow's scatter_nd: updates have the shape of
/// gather_nd(zeros(shape), index). Negative indices count from the end.
/// Example: for i64 i = `[[1], [3], [1]]` and updates = `[5, 6, 7]`, `scatter_nd(i, updates, {4})` is `[0, 12, 0, 6]`.
DECLIVITY_API Tensor scatter_nd(const Tensor& index, const Tensor& updates, const Shape& shape);

/// Advanced indexing x[index[0], index[1], ...] by tensors, which broadcast. An undefined tensor stands for a whole
/// axis, and a bool tensor of n axes for the positions where it is true in n axes of x (which synchronises to count
/// them). The axes of the indices replace the first indexed axis, or come first if other axes separate the indices, as
/// in NumPy. Negative indices count from the end.
/// Examples: for x = `[[1, 2], [3, 4]]`, i64 rows = `[0, 1, 1]` and i64 columns = `[1, 0, -1]`,
/// `index(x, {rows, columns})` is `[2, 3, 4]`; `index(x, {Tensor(), columns})` is `[[2, 1, 2], [4, 3, 4]]`;
/// `index(x, {x > 2})` is `[3, 4]`.
/// @throws ShapeError for more indices than axes, or a mask of other sizes than x; ValueError without any index
DECLIVITY_API Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
/// x with values at these indices, or added to its elements; values broadcast to the shape of index(x, indices).
/// Examples: for x = `[1, 2, 3]`, i64 i = `[0, 0]` and values = `[5, 6]`, `index_put(x, {i}, values)` is `[6, 2, 3]`;
/// `index_put(x, {i}, values, true)` is `[12, 2, 3]`.
/// @throws ShapeError, ValueError as index()
DECLIVITY_API Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                               bool accumulate = false);

/// Copy of x, broadcast with the mask, with `value`, a number or a tensor without axes, where the mask is true.
/// Example: for x = `[1, 2, 3]` and bool mask = `[false, true, true]`, `masked_fill(x, mask, -1)` is `[1, -1, -1]`.
DECLIVITY_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const TensorOrScalar& value);
/// Elements of x where the mask is true, as a vector (N); both broadcast. Synchronises to count them.
/// Example: for x = `[[1, 2], [3, 4]]`, `masked_select(x, x > 1)` is `[2, 3, 4]`.
DECLIVITY_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with the elements of `source`, in order, where the mask is true; NaN (0 for integers) if there are too few.
/// Example: for x = `[1, 2, 3, 4]`, bool mask = `[true, false, true, false]` and source = `[8, 9]`,
/// `masked_scatter(x, mask, source)` is `[8, 2, 9, 4]`.
DECLIVITY_API Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// Indices of the elements that are not 0, one per row: (N, axes of x), i64. Synchronises to count them.
/// Example: for x = `[[0, 5], [7, 0]]`, `nonzero(x)` is `[[0, 1], [1, 0]]`.
DECLIVITY_API Tensor nonzero(const Tensor& x);
/// One-hot encoding: 1 at each label, otherwise 0: labels (...) -> (..., num_classes), i64. A label out of range gives
/// zeros. Without a number of classes it synchronises to read the largest label, and uses that plus one.
/// Example: for i64 labels = `[2, 0]`, `one_hot(labels)` is `[[0, 0, 1], [1, 0, 0]]`.
/// @throws ValueError for a negative number of classes other than -1, and without one for negative labels, or none
DECLIVITY_API Tensor one_hot(const Tensor& labels, std::int64_t num_classes = -1);
/// Number (i64) of occurrences of 0, 1, ... in integers x (N), or the sum of their weights (N), in the type of the
/// weights; at least `minlength` elements. Synchronises to read the largest.
/// Examples: for i64 x = `[3, 1, 1]` and weights = `[0.5, 1, 2]`, `bincount(x)` is `[0, 2, 0, 1]`;
/// `bincount(x, weights)` is `[0, 3, 0, 0.5]`; `bincount(x, {}, 5)` is `[0, 2, 0, 1, 0]`.
/// @throws ValueError for a negative element or minlength
DECLIVITY_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t minlength = 0);

/// @}

}  // namespace declivity
