// Layer 5. More functions that change the shape, composed of those of shape.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_arrangement More functions of shapes and axes
/// @ingroup functions
/// Functions that change the shape, by their PyTorch names, composed of those of @ref functions_shape. Their types and
/// errors are the same.
/// @{

/// x with at least one axis: a tensor without axes becomes (1).
/// Example: `atleast_1d(full({}, 5))` is `[5]`.
DECLIVITY_API Tensor atleast_1d(const Tensor& x);
/// x with at least two axes: (N) becomes (1, N). Example: `atleast_2d(ones({3})).shape()` is `[1, 3]`.
DECLIVITY_API Tensor atleast_2d(const Tensor& x);
/// x with at least three axes: (N) becomes (1, N, 1), (M, N) becomes (M, N, 1).
/// Example: `atleast_3d(ones({3})).shape()` is `[1, 3, 1]`.
DECLIVITY_API Tensor atleast_3d(const Tensor& x);
/// Joins along axis 1, vectors along axis 0, after atleast_1d().
/// Example: for a = `[1, 2]` and b = `[3, 4]`, `hstack({a, b})` is `[1, 2, 3, 4]`.
DECLIVITY_API Tensor hstack(const std::vector<Tensor>& parts);
/// Joins along axis 0, after atleast_2d().
/// Example: for a = `[1, 2]` and b = `[3, 4]`, `vstack({a, b})` is `[[1, 2], [3, 4]]`.
DECLIVITY_API Tensor vstack(const std::vector<Tensor>& parts);
/// Joins along axis 2, after atleast_3d().
/// Example: for a = `[1, 2]` and b = `[3, 4]`, `dstack({a, b})` is `[[[1, 3], [2, 4]]]`.
DECLIVITY_API Tensor dstack(const std::vector<Tensor>& parts);
/// Block diagonal matrix of matrices, otherwise 0; a part (N) is a row, a number one element.
/// Example: for a = `[1, 2]` and b = `[[3], [4]]`, `block_diag({a, b})` is `[[1, 2, 0], [0, 0, 3], [0, 0, 4]]`.
/// @throws ShapeError for a part of more than two axes
DECLIVITY_API Tensor block_diag(const std::vector<Tensor>& parts);
/// Matrix with all elements of x, row-major, on a diagonal.
/// Example: for x = `[1, 2]`, `diagflat(x, -1)` is `[[0, 0, 0], [1, 0, 0], [0, 2, 0]]`.
DECLIVITY_API Tensor diagflat(const Tensor& x, std::int64_t offset = 0);

/// `length` elements of an axis from `start` on, which may be negative to count from the end; a view.
/// Example: for x = `[[1, 2, 3], [4, 5, 6]]`, `narrow(x, 1, -2, 2)` is `[[2, 3], [5, 6]]`.
/// @throws ValueError if they are out of range
DECLIVITY_API Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length);
/// Splits an axis into `sections` parts, the first ones larger by one element if the size is not divisible.
/// Example: for x = `[1, 2, 3, 4, 5]`, `tensor_split(x, 3)` is `{[1, 2], [3, 4], [5]}`.
DECLIVITY_API std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, std::int64_t axis = 0);
/// Splits an axis at these positions, which may be negative to count from the end, or beyond the end. For one
/// position write std::vector<std::int64_t>{2}: {2} is a number of sections.
/// Example: for x = `[1, 2, 3, 4, 5]`, `tensor_split(x, std::vector<std::int64_t>{1, -1})` is `{[1], [2, 3, 4], [5]}`.
DECLIVITY_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<std::int64_t>& indices,
                                               std::int64_t axis = 0);

/// Alias of transpose(x, axis_a, axis_b).
/// Example: for x = `[[1, 2], [3, 4]]`, `swapaxes(x, 0, 1)` is `[[1, 3], [2, 4]]`.
DECLIVITY_API Tensor swapaxes(const Tensor& x, std::int64_t axis_a, std::int64_t axis_b);
/// Alias of movedim(x, from, to). Example: `moveaxis(zeros({2, 3, 4}), 0, 2).shape()` is `[3, 4, 2]`.
DECLIVITY_API Tensor moveaxis(const Tensor& x, std::int64_t from, std::int64_t to);
/// Alias of movedim() of several axes.
DECLIVITY_API Tensor moveaxis(const Tensor& x, const Dims& from, const Dims& to);
/// Broadcasts x to the shape of `other`.
/// Example: for x = `[1, 2]`, `expand_as(x, zeros({2, 2}))` is `[[1, 2], [1, 2]]`.
DECLIVITY_API Tensor expand_as(const Tensor& x, const Tensor& other);
/// Reshapes x to the shape of `other`, which has the same number of elements.
/// Example: for x = `[1, 2, 3, 4]`, `reshape_as(x, zeros({2, 2}))` is `[[1, 2], [3, 4]]`.
DECLIVITY_API Tensor reshape_as(const Tensor& x, const Tensor& other);
/// Alias of reshape_as(). Example: for x = `[1, 2, 3, 4]`, `view_as(x, zeros({4, 1}))` is `[[1], [2], [3], [4]]`.
DECLIVITY_API Tensor view_as(const Tensor& x, const Tensor& other);
/// All elements of x, row-major, along one axis.
/// Example: for x = `[[1, 2], [3, 4]]`, `ravel(x)` is `[1, 2, 3, 4]`.
DECLIVITY_API Tensor ravel(const Tensor& x);
/// flip() along axis 1, of x with at least two axes.
/// Example: for x = `[[1, 2], [3, 4]]`, `fliplr(x)` is `[[2, 1], [4, 3]]`.
DECLIVITY_API Tensor fliplr(const Tensor& x);
/// flip() along axis 0, of x with at least one axis.
/// Example: for x = `[[1, 2], [3, 4]]`, `flipud(x)` is `[[3, 4], [1, 2]]`.
DECLIVITY_API Tensor flipud(const Tensor& x);

/// Alias of take_along_axis(), with PyTorch's name.
/// Examples: for x = `[[1, 2], [3, 4]]` and i64 i = `[[1], [0]]`, `take_along_dim(x, i, 1)` is `[[2], [3]]`;
/// `take_along_dim(x, i)` is `[2, 1]`.
DECLIVITY_API Tensor take_along_dim(const Tensor& x, const Tensor& index, std::int64_t axis);
/// take_along_axis() of x and index, both flattened.
DECLIVITY_API Tensor take_along_dim(const Tensor& x, const Tensor& index);
/// Alias of nonzero(): indices of the elements that are not 0, one per row. Synchronises.
/// Example: for x = `[[0, 5], [7, 0]]`, `argwhere(x)` is `[[0, 1], [1, 0]]`.
DECLIVITY_API Tensor argwhere(const Tensor& x);
/// All combinations of r elements of x (N), in order, one per row: (count, r). With replacement, elements may repeat.
/// For r = 0 empty, (0).
/// Examples: for x = `[1, 2, 3]`, `combinations(x)` is `[[1, 2], [1, 3], [2, 3]]`; `combinations(x, 2, true)` is
/// `[[1, 1], [1, 2], [1, 3], [2, 2], [2, 3], [3, 3]]`.
DECLIVITY_API Tensor combinations(const Tensor& x, std::int64_t r = 2, bool with_replacement = false);

/// @}

}  // namespace declivity
