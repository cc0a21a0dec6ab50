// Layer 3. Functions that change the shape. No data moves, except where a dense copy is needed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Another shape of as many elements; one size may be -1 and is computed.
DECLIVITY_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins the axes from `first` to `last`: (N, C, H, W) becomes (N, C*H*W).
DECLIVITY_API Tensor flatten(const Tensor& x, std::int64_t first = 1, std::int64_t last = -1);
/// Axis i of the result is axis order[i] of x.
DECLIVITY_API Tensor permute(const Tensor& x, const Dims& order);
/// Exchanges two axes.
DECLIVITY_API Tensor transpose(const Tensor& x, std::int64_t axis_a = -2, std::int64_t axis_b = -1);
/// Elements start, start + step, ... before `end` of one axis. Negative start and end count from the end.
DECLIVITY_API Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end,
                           std::int64_t step = 1);
/// Element `index` of one axis, which goes. A negative index counts from the end.
DECLIVITY_API Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index);
/// x with `src` in the place of slice(x, axis, start, end, step). Where x is given away (std::move) and nobody else
/// holds its elements, they are not copied, so that rows are filled in at the price of the rows, in a graph as well:
///
///     for (int t = 0; t < steps; ++t) x = slice_scatter(std::move(x), row(t), 0, t, t + 1);
DECLIVITY_API Tensor slice_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t start, std::int64_t end,
                                   std::int64_t step = 1);
/// x with `src` in the place of select(x, axis, index); x is given away as for slice_scatter.
DECLIVITY_API Tensor select_scatter(Tensor x, Tensor src, std::int64_t axis, std::int64_t index);
/// Repeats axes of size 1, and makes new ones in front; -1 keeps the size of an axis that x has.
DECLIVITY_API Tensor expand(const Tensor& x, const Shape& shape);
/// Joins along an existing axis. Parts that wait, and that are given away (std::move), are computed in their place.
DECLIVITY_API Tensor concat(std::vector<Tensor> parts, std::int64_t axis);
/// The same, by its short name.
DECLIVITY_API Tensor cat(std::vector<Tensor> parts, std::int64_t axis = 0);
/// Adds `before[i]` and `after[i]` elements of `value` around axis i; negative numbers cut off as many. See padding.hpp
/// for what else may stand there.
DECLIVITY_API Tensor pad(const Tensor& x, const Dims& before, const Dims& after, Scalar value = 0);

/// An axis of size 1 at `axis` of the result.
DECLIVITY_API Tensor unsqueeze(const Tensor& x, std::int64_t axis);
/// Without its axes of size 1; without those that are named, where they have size 1.
DECLIVITY_API Tensor squeeze(const Tensor& x, const Dims& axes = {});
/// Axis `from` becomes axis `to`; the others keep their order.
DECLIVITY_API Tensor movedim(const Tensor& x, std::int64_t from, std::int64_t to);
DECLIVITY_API Tensor movedim(const Tensor& x, const Dims& from, const Dims& to);
/// Splits an axis into axes of these sizes, one of which may be -1.
DECLIVITY_API Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& sizes);
/// As expand(); leading axes of x may be missing.
DECLIVITY_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// All stretched to one shape.
DECLIVITY_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);

/// Joins along a new axis.
DECLIVITY_API Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis = 0);
/// Parts of `size` elements along an axis, the last one of what is left; or of these sizes.
DECLIVITY_API std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis = 0);
DECLIVITY_API std::vector<Tensor> split(const Tensor& x, const Dims& sizes, std::int64_t axis = 0);
/// At most `chunks` parts of one size, the last one of what is left.
DECLIVITY_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis = 0);
/// The elements of an axis one by one, which have it no longer.
DECLIVITY_API std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis = 0);

/// x again and again, counts[i] times along axis i; counts of more axes than x make new ones in front. Also `tile`.
DECLIVITY_API Tensor repeat(const Tensor& x, const Dims& counts);
/// The same; missing counts in front are 1.
DECLIVITY_API Tensor tile(const Tensor& x, const Dims& counts);
/// Each element of an axis `repeats` times in a row, or as often as `repeats` (N) says for it, which it reads, so that
/// it waits.
DECLIVITY_API Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::int64_t axis);
DECLIVITY_API Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::int64_t axis);
/// Of all elements in a row.
inline Tensor repeat_interleave(const Tensor& x, std::int64_t repeats) {
    return repeat_interleave(reshape(x, {-1}), repeats, 0);
}
/// The elements of these axes in reverse order; a copy.
DECLIVITY_API Tensor flip(const Tensor& x, const Dims& axes);
/// Moved by `shifts[i]` along axes[i]; what leaves at the end comes back at the front.
DECLIVITY_API Tensor roll(const Tensor& x, const Dims& shifts, const Dims& axes);
/// Turned k times by 90 degrees from axis_a towards axis_b.
DECLIVITY_API Tensor rot90(const Tensor& x, std::int64_t k = 1, std::int64_t axis_a = 0, std::int64_t axis_b = 1);

/// Coordinates of a grid from those of its axes: with "ij" axis i of all results is that of tensor i; with "xy" the
/// first two are exchanged.
DECLIVITY_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, std::string_view indexing = "ij");
/// All tuples of one element of each: (product of sizes, tensors).
DECLIVITY_API Tensor cartesian_prod(const std::vector<Tensor>& tensors);
/// The elements [i][i + offset] of two axes, as the last axis of the result; a view.
DECLIVITY_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis_a = 0,
                              std::int64_t axis_b = 1);
/// The lower (upper) triangle of the last two axes, up to the given diagonal, and 0 elsewhere.
DECLIVITY_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
DECLIVITY_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// A matrix with x (N) on a diagonal, or a diagonal of a matrix x.
DECLIVITY_API Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// Matrices with the last axis of x on a diagonal: in the result their rows are axis1, their columns axis2.
DECLIVITY_API Tensor diag_embed(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = -2,
                                std::int64_t axis2 = -1);

/// Channels of x (N, C, ...) as `groups` rows of C / groups, read column by column (Zhang et al. 2018).
DECLIVITY_API Tensor channel_shuffle(const Tensor& x, std::int64_t groups);
/// (N, C r^2, H, W) to (N, C, H r, W r), as Shi et al. 2016, and back.
DECLIVITY_API Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor);
DECLIVITY_API Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale_factor);
/// ONNX's DepthToSpace of mode DCR, and SpaceToDepth: blocks of `block` x `block` positions go to channels in front of
/// those of x.
DECLIVITY_API Tensor depth_to_space(const Tensor& x, std::int64_t block);
DECLIVITY_API Tensor space_to_depth(const Tensor& x, std::int64_t block);

}  // namespace declivity
