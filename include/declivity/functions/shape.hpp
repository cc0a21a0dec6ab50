// Layer 5. Functions that change the shape.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_shape Shapes and axes
/// @ingroup functions
/// Functions that change the shape, join, split, repeat or rearrange elements.
///
/// - Memory: the result is a view of x, except where a dense copy is needed.
/// - Axes may be negative to count from the end.
/// - Types: any; the result has the type of x, and joined tensors their promoted type. Floating types are
///   differentiable.
/// - Errors: ShapeError for an axis out of range, and for shapes or sizes that do not match; ValueError for an
///   undefined tensor, and for an empty list of tensors; TypeError for joined tensors of types without a common one,
///   and DeviceError for joined tensors on different devices.
///
/// @{

/// Another shape with the same number of elements; one size may be -1 and is inferred.
/// Example: for x = `[[1, 2, 3], [4, 5, 6]]`, `reshape(x, {3, -1})` is `[[1, 2], [3, 4], [5, 6]]`.
DECLIVITY_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins the axes from `first` to `last`: (N, C, H, W) becomes (N, C*H*W).
/// Examples: for x = `[[[1, 2], [3, 4]]]`, `flatten(x)` is `[[1, 2, 3, 4]]`; `flatten(x, 0)` is `[1, 2, 3, 4]`.
/// @throws ValueError for a `first` after `last`
DECLIVITY_API Tensor flatten(const Tensor& x, std::int64_t first = 1, std::int64_t last = -1);
/// Axis i of the result is axis order[i] of x.
/// Example: `permute(zeros({2, 3, 4}), {2, 0, 1}).shape()` is `[4, 2, 3]`.
DECLIVITY_API Tensor permute(const Tensor& x, const Dims& order);
/// Exchanges two axes, by default the last two.
/// Example: for x = `[[1, 2], [3, 4]]`, `transpose(x)` is `[[1, 3], [2, 4]]`.
DECLIVITY_API Tensor transpose(const Tensor& x, std::int64_t axis_a = -2, std::int64_t axis_b = -1);
/// Elements start, start + step, ... up to but excluding `end` of one axis. Negative start and end count from the end;
/// both are clamped to the axis.
/// Examples: for x = `[0, 1, 2, 3, 4]`, `slice(x, 0, 1, 4)` is `[1, 2, 3]`; `slice(x, 0, 0, -1, 2)` is `[0, 2]`.
/// @throws ShapeError for a step below 1
DECLIVITY_API Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end,
                           std::int64_t step = 1);
/// Element `index` of one axis, which is removed. A negative index counts from the end.
/// Example: for x = `[[1, 2], [3, 4]]`, `select(x, 1, -1)` is `[2, 4]`.
/// @throws ShapeError for an index out of range
DECLIVITY_API Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index);
/// x with slice(x, axis, start, end, step) replaced by `src`. If x is donated (std::move) and unshared, its elements
/// are not copied, so that filling rows costs only these rows, in a graph as well:
///
///     for (int t = 0; t < steps; ++t) x = slice_scatter(std::move(x), row(t), 0, t, t + 1);
///
/// Example: for x = `[1, 2, 3, 4]` and src = `[8, 9]`, `slice_scatter(x, src, 0, 1, 3)` is `[1, 8, 9, 4]`.
DECLIVITY_API Tensor slice_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t start, std::int64_t end,
                                   std::int64_t step = 1);
/// x with select(x, axis, index) replaced by `src`; x may be donated as for slice_scatter.
/// Example: for x = `[[1, 2], [3, 4]]` and src = `[8, 9]`, `select_scatter(x, src, 1, 0)` is `[[8, 2], [9, 4]]`.
DECLIVITY_API Tensor select_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t index);
/// Broadcasts axes of size 1, and prepends new ones; -1 keeps the size of an axis of x.
/// Example: for x = `[[1], [2]]`, `expand(x, {-1, 3})` is `[[1, 1, 1], [2, 2, 2]]`.
DECLIVITY_API Tensor expand(const Tensor& x, const Shape& shape);
/// Joins along an existing axis; other sizes are equal, and parts of shape (0) are left out. Pending parts that are
/// donated (std::move) are computed directly into the result.
/// Example: for a = `[[1], [2]]` and b = `[[3, 4], [5, 6]]`, `concat({a, b}, 1)` is `[[1, 3, 4], [2, 5, 6]]`.
DECLIVITY_API Tensor concat(std::vector<Tensor> parts, std::int64_t axis);
/// PyTorch's name of concat.
/// Example: for a = `[1, 2]` and b = `[3]`, `cat({a, b})` is `[1, 2, 3]`.
DECLIVITY_API Tensor cat(std::vector<Tensor> parts, std::int64_t axis = 0);
/// Adds `before[i]` and `after[i]` elements of `value` around axis i; negative numbers crop. For other modes see
/// padding.hpp.
/// Examples: for x = `[1, 2, 3]`, `pad(x, Dims{2}, Dims{1})` is `[0, 0, 1, 2, 3, 0]`; `pad(x, Dims{-1}, Dims{1}, 9)` is
/// `[2, 3, 9]`.
DECLIVITY_API Tensor pad(const Tensor& x, const Dims& before, const Dims& after, Scalar value = 0);

/// Inserts an axis of size 1 at `axis` of the result.
/// Examples: for x = `[1, 2]`, `unsqueeze(x, 0)` is `[[1, 2]]`; `unsqueeze(x, -1)` is `[[1], [2]]`.
DECLIVITY_API Tensor unsqueeze(const Tensor& x, std::int64_t axis);
/// Removes all axes of size 1, or those of the given axes that have size 1.
/// Examples: for x = `[[[1], [2]]]`, `squeeze(x)` is `[1, 2]`; `squeeze(x, {0})` is `[[1], [2]]`.
DECLIVITY_API Tensor squeeze(const Tensor& x, const Dims& axes = {});
/// Moves axis `from` to `to`; the others keep their order.
/// Example: `movedim(zeros({2, 3, 4}), 0, -1).shape()` is `[3, 4, 2]`.
DECLIVITY_API Tensor movedim(const Tensor& x, std::int64_t from, std::int64_t to);
/// Moves each axis from[i] to to[i]; the others keep their order.
DECLIVITY_API Tensor movedim(const Tensor& x, const Dims& from, const Dims& to);
/// Splits an axis into axes of these sizes, one of which may be -1.
/// Example: for x = `[1, 2, 3, 4, 5, 6]`, `unflatten(x, 0, {2, -1})` is `[[1, 2, 3], [4, 5, 6]]`.
DECLIVITY_API Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& sizes);
/// PyTorch's name of expand(): broadcasts axes of size 1, and prepends new ones.
/// Example: for x = `[1, 2]`, `broadcast_to(x, {2, 2})` is `[[1, 2], [1, 2]]`.
DECLIVITY_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Broadcasts all tensors to a common shape, as in elementwise functions.
/// Example: for a = `[1, 2]` and b = `[[3], [4]]`, `broadcast_tensors({a, b})` is
/// `{[[1, 2], [1, 2]], [[3, 3], [4, 4]]}`.
DECLIVITY_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);

/// Joins tensors of one shape along a new axis.
/// Examples: for a = `[1, 2]` and b = `[3, 4]`, `stack({a, b})` is `[[1, 2], [3, 4]]`; `stack({a, b}, 1)` is
/// `[[1, 3], [2, 4]]`.
DECLIVITY_API Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis = 0);
/// Splits an axis into parts of `size` elements, the last one with the remainder.
/// Examples: for x = `[1, 2, 3, 4, 5]`, `split(x, 2)` is `{[1, 2], [3, 4], [5]}`; `split(x, Dims{1, 4})` is
/// `{[1], [2, 3, 4, 5]}`.
/// @throws ValueError for a size below 1
DECLIVITY_API std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis = 0);
/// Splits an axis into parts of these sizes, whose sum is the size of the axis.
DECLIVITY_API std::vector<Tensor> split(const Tensor& x, const Dims& sizes, std::int64_t axis = 0);
/// Splits an axis into at most `chunks` parts of equal size, the last one with the remainder.
/// Example: for x = `[1, 2, 3, 4, 5]`, `chunk(x, 2)` is `{[1, 2, 3], [4, 5]}`.
/// @throws ValueError for fewer than 1 chunk
DECLIVITY_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis = 0);
/// Elements of an axis as separate tensors, without that axis.
/// Examples: for x = `[[1, 2], [3, 4]]`, `unbind(x)` is `{[1, 2], [3, 4]}`; `unbind(x, 1)` is `{[1, 3], [2, 4]}`.
DECLIVITY_API std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis = 0);

/// Repeats x counts[i] times along axis i; more counts than axes prepend new axes.
/// Example: for x = `[1, 2]`, `repeat(x, {2, 2})` is `[[1, 2, 1, 2], [1, 2, 1, 2]]`.
/// @throws ShapeError for negative counts, or fewer than x has axes
DECLIVITY_API Tensor repeat(const Tensor& x, const Dims& counts);
/// repeat() in which missing leading counts are 1.
/// Example: for x = `[[1], [2]]`, `tile(x, 2)` is `[[1, 1], [2, 2]]`.
/// @throws ShapeError for negative counts
DECLIVITY_API Tensor tile(const Tensor& x, const Dims& counts);
/// Repeats each element of an axis `repeats` times in a row.
/// Examples: for x = `[5, 6]` and i64 counts = `[1, 3]`, `repeat_interleave(x, 2, 0)` is `[5, 5, 6, 6]`;
/// `repeat_interleave(x, counts, 0)` is `[5, 6, 6, 6]`.
/// @throws ValueError for a negative number of repeats
DECLIVITY_API Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::int64_t axis);
/// Repeats element i of an axis of N elements repeats[i] times in a row: repeats (N). Synchronises to read them.
DECLIVITY_API Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::int64_t axis);
/// Repeats each element of x, flattened, `repeats` times in a row.
inline Tensor repeat_interleave(const Tensor& x, std::int64_t repeats) {
    return repeat_interleave(reshape(x, {-1}), repeats, 0);
}
/// Reverses the elements along these axes; none are reversed without axes. A copy.
/// Example: for x = `[[1, 2], [3, 4]]`, `flip(x, {1})` is `[[2, 1], [4, 3]]`.
DECLIVITY_API Tensor flip(const Tensor& x, const Dims& axes);
/// Shifts by shifts[i] along axes[i], cyclically; one shift without axes shifts the flattened elements.
/// Examples: for x = `[1, 2, 3, 4]`, `roll(x, {1}, {0})` is `[4, 1, 2, 3]`; `roll(x, {-1}, {0})` is `[2, 3, 4, 1]`.
/// @throws ValueError unless there are as many shifts as axes
DECLIVITY_API Tensor roll(const Tensor& x, const Dims& shifts, const Dims& axes);
/// Rotates k times by 90 degrees from axis_a towards axis_b.
/// Example: for x = `[[1, 2], [3, 4]]`, `rot90(x)` is `[[2, 4], [1, 3]]`.
/// @throws ValueError for equal axes
DECLIVITY_API Tensor rot90(const Tensor& x, std::int64_t k = 1, std::int64_t axis_a = 0, std::int64_t axis_b = 1);

/// Coordinate grids from the coordinates (N) or () of its axes: with "ij" axis i of all results is that of tensor i;
/// with "xy" the first two are exchanged.
/// Examples: for a = `[1, 2]` and b = `[3, 4, 5]`, `meshgrid({a, b})[0]` is `[[1, 1, 1], [2, 2, 2]]`;
/// `meshgrid({a, b}, "xy")[0]` is `[[1, 2], [1, 2], [1, 2]]`.
/// @throws ValueError for another indexing
DECLIVITY_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, std::string_view indexing = "ij");
/// Cartesian product of tensors (N): all tuples of one element of each: (product of sizes, tensors). One tensor is
/// returned unchanged.
/// Example: for a = `[1, 2]` and b = `[3, 4]`, `cartesian_prod({a, b})` is `[[1, 3], [1, 4], [2, 3], [2, 4]]`.
DECLIVITY_API Tensor cartesian_prod(const std::vector<Tensor>& tensors);
/// Elements [i][i + offset] of two axes, as the last axis of the result; a view.
/// Examples: for x = `[[1, 2, 3], [4, 5, 6]]`, `diagonal(x)` is `[1, 5]`; `diagonal(x, 1)` is `[2, 6]`.
/// @throws ValueError for equal axes
DECLIVITY_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis_a = 0,
                              std::int64_t axis_b = 1);
/// Lower triangles of matrices (..., m, n): elements [i][j] with j - i <= diagonal, otherwise 0.
/// Example: for x = `[[1, 2], [3, 4]]`, `tril(x)` is `[[1, 0], [3, 4]]`.
DECLIVITY_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// Upper triangles of matrices (..., m, n): elements [i][j] with j - i >= diagonal, otherwise 0.
/// Examples: for x = `[[1, 2], [3, 4]]`, `triu(x)` is `[[1, 2], [0, 4]]`; `triu(x, 1)` is `[[0, 2], [0, 0]]`.
DECLIVITY_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// Matrix with x (N) on the diagonal j - i = offset, otherwise 0; or that diagonal of a matrix x (M, N).
/// Examples: for x = `[1, 2]`, `diag(x)` is `[[1, 0], [0, 2]]`; `diag(diag(x))` is `[1, 2]`; `diag(x, 1)` is
/// `[[0, 1, 0], [0, 0, 2], [0, 0, 0]]`.
/// @throws ShapeError for other than one or two axes
DECLIVITY_API Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// Matrices with the last axis of x on a diagonal: axis1 of the result has their rows, axis2 their columns.
/// Example: for x = `[[1, 2], [3, 4]]`, `diag_embed(x)` is `[[[1, 0], [0, 2]], [[3, 0], [0, 4]]]`.
/// @throws ShapeError for x without axes, or axis1 equal to axis2
DECLIVITY_API Tensor diag_embed(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = -2,
                                std::int64_t axis2 = -1);

/// Rearranges the channels of x (N, C, ...) as `groups` rows of C / groups, read column by column (Zhang et al. 2018).
/// Example: for x = `[[[1], [2], [3], [4]]]`, `channel_shuffle(x, 2)` is `[[[1], [3], [2], [4]]]`.
/// @throws ValueError unless groups divides C
DECLIVITY_API Tensor channel_shuffle(const Tensor& x, std::int64_t groups);
/// (..., C r^2, H, W) to (..., C, H r, W r) for the upscale factor r: the r^2 channels of each output channel become
/// blocks of r x r positions (Shi et al. 2016).
/// Example: for x = `[[[[1]], [[2]], [[3]], [[4]]]]`, `pixel_shuffle(x, 2)` is `[[[[1, 2], [3, 4]]]]`.
/// @throws ShapeError unless r^2 divides the channels
DECLIVITY_API Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor);
/// (..., C, H r, W r) to (..., C r^2, H, W): inverse of pixel_shuffle().
/// Example: for x = `[[[[1]], [[2]], [[3]], [[4]]]]`, `pixel_unshuffle(pixel_shuffle(x, 2), 2)` is
/// `[[[[1]], [[2]], [[3]], [[4]]]]`.
/// @throws ShapeError unless r divides height and width
DECLIVITY_API Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale_factor);
/// (..., C b^2, H, W) to (..., C, H b, W b) for blocks of b x b positions, as ONNX's DepthToSpace of mode DCR: the
/// positions in a block precede the channels.
/// Example: for x = `[[[[1]], [[2]], [[3]], [[4]]]]`, `depth_to_space(x, 2)` is `[[[[1, 2], [3, 4]]]]`.
/// @throws ShapeError unless b^2 divides the channels
DECLIVITY_API Tensor depth_to_space(const Tensor& x, std::int64_t block);
/// (..., C, H b, W b) to (..., C b^2, H, W), as ONNX's SpaceToDepth: inverse of depth_to_space().
/// Example: for x = `[[[[1]], [[2]], [[3]], [[4]]]]`, `space_to_depth(depth_to_space(x, 2), 2)` is
/// `[[[[1]], [[2]], [[3]], [[4]]]]`.
/// @throws ShapeError unless b divides height and width
DECLIVITY_API Tensor space_to_depth(const Tensor& x, std::int64_t block);

/// @}

}  // namespace declivity
