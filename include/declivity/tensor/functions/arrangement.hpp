// Layer 3. More functions that change the shape, by their names in PyTorch: all are made of those of shape.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// With axes of size 1 up to one, two, three of them: (N) becomes (1, N) and (1, N, 1), (M, N) becomes (M, N, 1).
DECLIVITY_API Tensor atleast_1d(const Tensor& x);
DECLIVITY_API Tensor atleast_2d(const Tensor& x);
DECLIVITY_API Tensor atleast_3d(const Tensor& x);
/// Joined along axis 1, rows of one axis along theirs; along axis 0 after atleast_2d; along axis 2 after atleast_3d.
DECLIVITY_API Tensor hstack(const std::vector<Tensor>& parts);
DECLIVITY_API Tensor vstack(const std::vector<Tensor>& parts);
DECLIVITY_API Tensor dstack(const std::vector<Tensor>& parts);
/// A matrix of matrices along its diagonal, 0 elsewhere; a part (N) is a row, a number one element.
/// @throws ShapeError for a part of more than two axes
DECLIVITY_API Tensor block_diag(const std::vector<Tensor>& parts);
/// All elements, row-major, on a diagonal of a matrix.
DECLIVITY_API Tensor diagflat(const Tensor& x, std::int64_t offset = 0);

/// `length` elements of an axis from `start` on, which may count from the end; a view.
/// @throws ValueError where they are not there
DECLIVITY_API Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length);
/// `sections` parts along an axis, the first ones longer by an element where they cannot be of one size.
DECLIVITY_API std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, std::int64_t axis = 0);
/// The parts before, between and behind these places, which may count from the end, or lie behind it. One place alone
/// is a std::vector by name: {2} is a number of sections.
DECLIVITY_API std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<std::int64_t>& places,
                                               std::int64_t axis = 0);

/// transpose(x, axis_a, axis_b) and movedim(x, from, to) by other names.
DECLIVITY_API Tensor swapaxes(const Tensor& x, std::int64_t axis_a, std::int64_t axis_b);
DECLIVITY_API Tensor moveaxis(const Tensor& x, std::int64_t from, std::int64_t to);
DECLIVITY_API Tensor moveaxis(const Tensor& x, const Dims& from, const Dims& to);
/// x stretched to the shape of another.
DECLIVITY_API Tensor expand_as(const Tensor& x, const Tensor& other);
/// x in the shape of another of as many elements.
DECLIVITY_API Tensor reshape_as(const Tensor& x, const Tensor& other);
DECLIVITY_API Tensor view_as(const Tensor& x, const Tensor& other);
/// All elements in a row.
DECLIVITY_API Tensor ravel(const Tensor& x);
/// flip() along axis 1, of at least two, and along axis 0.
DECLIVITY_API Tensor fliplr(const Tensor& x);
DECLIVITY_API Tensor flipud(const Tensor& x);

/// take_along_axis() by PyTorch's name; without an axis of both in a row.
DECLIVITY_API Tensor take_along_dim(const Tensor& x, const Tensor& index, std::int64_t axis);
DECLIVITY_API Tensor take_along_dim(const Tensor& x, const Tensor& index);
/// nonzero() by another name: the indices of what is not 0, one a row. Waits.
DECLIVITY_API Tensor argwhere(const Tensor& x);
/// All ways to take r elements of x (N), in their order, one a row: (count, r). With replacement an element may come
/// again. For r = 0 no elements, (0).
DECLIVITY_API Tensor combinations(const Tensor& x, std::int64_t r = 2, bool with_replacement = false);

}  // namespace declivity
