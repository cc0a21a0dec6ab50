// Floor 3. Functions that change the shape. No data moves, except where a dense copy is needed.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Another shape of as many elements; one size may be -1 and is computed.
DECLIVITY_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins the axes from `first` on: (N, C, H, W) becomes (N, C*H*W).
DECLIVITY_API Tensor flatten(const Tensor& x, std::int64_t first = 1);
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
/// Repeats axes of size 1.
DECLIVITY_API Tensor expand(const Tensor& x, const Shape& shape);
/// Joins along an existing axis. Parts that wait, and that are given away (std::move), are computed in their place.
DECLIVITY_API Tensor concat(std::vector<Tensor> parts, std::int64_t axis);
/// The same, by its short name.
DECLIVITY_API Tensor cat(std::vector<Tensor> parts, std::int64_t axis = 0);
/// Adds `before[i]` and `after[i]` elements of `value` around axis i.
DECLIVITY_API Tensor pad(const Tensor& x, const Dims& before, const Dims& after, Scalar value = 0);

}  // namespace declivity
