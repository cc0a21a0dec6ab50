// Layer 3. Elements by their indices, and back.
//
// Indices are tensors of integers, which count from 0; axes may count from the end. What lies outside of an axis cannot
// be an error, since kernels compute while the program goes on: it reads as NaN (as 0 from integers), and is not
// written. Where several elements go to one place, they are added up in their order, and of those that replace one
// another the last one stays: results are the same in every run, to the bit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// y[i][j][k] = x[i][index[i][j][k]][k] for axis 1 of three, as torch.gather: index of as many axes as x, along the
/// others no longer than x; the result has its shape.
DECLIVITY_API Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index);
/// The same, where index and x are stretched over each other along the other axes, and negative indices count from the
/// end.
DECLIVITY_API Tensor take_along_axis(const Tensor& x, const Tensor& index, std::int64_t axis);
/// x with src[i][j][k] at [i][index[i][j][k]][k] for axis 1 of three. index of as many axes as x and src, and no longer
/// than either along the others.
DECLIVITY_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src);
/// The same with one number in all places.
DECLIVITY_API Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);
/// The same, added to what is there.
DECLIVITY_API Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src);

/// How elements that go to one place, and what is there, become one.
enum class ScatterReduction : std::uint8_t { sum, prod, mean, amax, amin };
/// @param include_self whether what is there counts; where nothing goes it stays in any case
/// The gradient of amax and amin goes to all that are equal to the result, in equal parts.
/// prod reads how many go to the fullest place, which waits.
DECLIVITY_API Tensor scatter_reduce(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src,
                                    ScatterReduction reduction, bool include_self = true);

/// The elements (rows, planes, ...) of an axis with these numbers: index (N).
DECLIVITY_API Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index);
/// x with alpha times the elements of `source` along the axis added to those with these numbers; index (N), source of
/// the shape of index_select(x, axis, index).
DECLIVITY_API Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                               Scalar alpha = 1);
/// x with them in the place of those with these numbers.
DECLIVITY_API Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
/// x with a number, or a tensor without axes, in their place.
DECLIVITY_API Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, const TensorOrScalar& value);
/// Elements of x as one long row, of the shape of index.
DECLIVITY_API Tensor take(const Tensor& x, const Tensor& index);
/// x[index[..., 0], index[..., 1], ...], as ONNX's GatherND: index (..., K) names K leading axes of x.
DECLIVITY_API Tensor gather_nd(const Tensor& x, const Tensor& index);
/// Zeros of a shape, with `updates` added at index (..., K), as TensorFlow's scatter_nd: updates have the shape of
/// gather_nd(zeros(shape), index).
DECLIVITY_API Tensor scatter_nd(const Tensor& index, const Tensor& updates, const Shape& shape);

/// x[index[0], index[1], ...] by tensors, which are stretched over each other; an undefined one stands for a whole
/// axis, and a bool one of n axes for the places where it is true in n axes of x (reads how many there are, which
/// waits). The axes of the indices stand where the first of them stood, and in front where others stand between them,
/// as in NumPy. Negative indices count from the end.
DECLIVITY_API Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
/// x with values in these places, or added to what is there; values stretch to the shape of index(x, indices).
DECLIVITY_API Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                               bool accumulate = false);

/// x, stretched over the mask, with a number, or a tensor without axes, where the mask is true.
DECLIVITY_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const TensorOrScalar& value);
/// The elements where the mask is true, in a row. Reads how many there are, which waits.
DECLIVITY_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with the elements of `source`, in order, where the mask is true; NaN (0 of integers) once there are no more.
DECLIVITY_API Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// The indices of what is not 0, one a row: (N, axes of x), i64. Reads how many there are, which waits.
DECLIVITY_API Tensor nonzero(const Tensor& x);
/// 1 at each label, 0 elsewhere: (..., num_classes), i64. Without a number of classes the largest label and one more,
/// for which it waits.
DECLIVITY_API Tensor one_hot(const Tensor& labels, std::int64_t num_classes = -1);
/// How often 0, 1, ... stand among whole numbers x (N), or the sum of their weights, in their type; at least
/// `minlength` of them. Reads the largest, which waits.
DECLIVITY_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t minlength = 0);

}  // namespace declivity
