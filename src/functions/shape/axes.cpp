// Functions of axes composed of others: views where possible.
#include <algorithm>
#include <numeric>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/axes.hpp"
#include "functions/support/list_call.hpp"
#include "ops/support/int32_range.hpp"

namespace declivity {

Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("unsqueeze", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    const int position = normalize_axis("unsqueeze", axis, x.rank() + 1);
    Shape shape;
    for (int i = 0; i <= x.rank(); ++i) {
        if (i == position) shape.push_back(1);
        if (i < x.rank()) shape.push_back(x.shape()[i]);
    }
    return call.result(reshape(x, shape));
}

Tensor squeeze(const Tensor& x, const Dims& axes) {
    const FunctionCall call("squeeze", {{"x", x}}, {{"axes", axes}});
    call.require_defined({"x"});
    if (x.rank() == 0) return call.result(x);
    Dims squeezed;
    for (const std::int64_t axis : axes) squeezed.push_back(normalize_axis("squeeze", axis, x.rank()));
    Shape shape;
    for (int i = 0; i < x.rank(); ++i)
        if (x.shape()[i] != 1 || (axes.rank() > 0 && std::ranges::find(squeezed, i) == squeezed.end()))
            shape.push_back(x.shape()[i]);
    return call.result(reshape(x, shape));
}

Tensor movedim(const Tensor& x, const Dims& from, const Dims& to) {
    const FunctionCall call("movedim", {{"x", x}}, {{"from", from}, {"to", to}});
    call.require_defined({"x"});
    if (from.rank() != to.rank())
        throw ValueError(fmt::format("movedim: expected as many axes from as to, got {} and {}", from.str(), to.str()));
    if (x.rank() == 0) return call.result(x);
    Dims order, source_axes;
    for (int i = 0; i < x.rank(); ++i) order.push_back(-1);
    for (int i = 0; i < from.rank(); ++i) {
        const int a = normalize_axis("movedim", from[i], x.rank()), b = normalize_axis("movedim", to[i], x.rank());
        if (order[b] != -1 || std::ranges::find(source_axes, a) != source_axes.end())
            throw ValueError(fmt::format("movedim: expected each axis once, got {} and {}", from.str(), to.str()));
        order[b] = a;
        source_axes.push_back(a);
    }
    int next = 0;
    for (int i = 0; i < order.rank(); ++i) {
        if (order[i] != -1) continue;
        while (std::ranges::find(source_axes, next) != source_axes.end()) ++next;
        order[i] = next++;
    }
    return call.result(permute(x, order));
}

Tensor movedim(const Tensor& x, std::int64_t from, std::int64_t to) { return movedim(x, Dims{from}, Dims{to}); }

Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& sizes) {
    const FunctionCall call("unflatten", {{"x", x}}, {{"axis", axis}, {"sizes", sizes}});
    call.require_defined({"x"});
    const int along = normalize_axis("unflatten", axis, x.rank());
    std::int64_t known = 1, unknown = 0;
    for (const std::int64_t size : sizes) (size == -1 ? ++unknown, size : known *= size);
    const std::int64_t axis_size = x.shape()[along];
    if (sizes.rank() == 0 || unknown > 1 || (unknown == 1 && (known == 0 || axis_size % known != 0)) ||
        (unknown == 0 && known != axis_size))
        throw ShapeError(fmt::format("unflatten: expected sizes of {} elements (axis {} of {}), got {}", axis_size,
                                     along, x.shape().str(), sizes.str()));
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
        if (i != along) shape.push_back(x.shape()[i]);
        else
            for (const std::int64_t size : sizes) shape.push_back(size == -1 ? axis_size / known : size);
    }
    return call.result(reshape(x, shape));
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
    const FunctionCall call("broadcast_to", {{"x", x}}, {{"shape", shape}});
    call.require_defined({"x"});
    return call.result(expand(x, shape));
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
    LIST_CALL("broadcast_tensors", tensors, {"count", static_cast<std::int64_t>(tensors.size())});
    Shape shape = tensors[0].shape();
    for (const Tensor& tensor : tensors) shape = broadcast_shapes("broadcast_tensors", shape, tensor.shape());
    std::vector<Tensor> expanded;
    for (const Tensor& tensor : tensors) expanded.push_back(expand(tensor, shape));
    call.results(expanded);
    return expanded;
}

Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis) {
    LIST_CALL("stack", parts, {"axis", axis});
    const int along = normalize_axis("stack", axis, parts[0].rank() + 1);
    std::vector<Tensor> unsqueezed;
    for (const Tensor& part : parts) {
        ops::require_shape("stack", "each part", part.shape(), parts[0].shape());
        unsqueezed.push_back(unsqueeze(part, along));
    }
    return call.result(concat(std::move(unsqueezed), along));
}

std::vector<Tensor> split(const Tensor& x, const Dims& sizes, std::int64_t axis) {
    const FunctionCall call("split", {{"x", x}}, {{"sizes", sizes}, {"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("split", axis, x.rank());
    const bool negative = std::ranges::any_of(sizes, [](std::int64_t size) { return size < 0; });
    if (negative || std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != x.shape()[along])
        throw ShapeError(fmt::format("split: expected sizes that add up to {} (axis {} of {}), got {}",
                                     x.shape()[along], along, x.shape().str(), sizes.str()));
    std::vector<Tensor> parts;
    std::int64_t from = 0;
    for (const std::int64_t size : sizes) {
        parts.push_back(slice(x, along, from, from + size));
        from += size;
    }
    call.results(parts);
    return parts;
}

namespace {

/// The last part has the remainder; there is one part if the axis is empty.
std::vector<Tensor> parts_of(const Tensor& x, std::int64_t size, int along) {
    std::vector<Tensor> parts;
    const std::int64_t length = x.shape()[along];
    for (std::int64_t from = 0; from < length || parts.empty(); from += size)
        parts.push_back(slice(x, along, from, std::min(length, from + size)));
    return parts;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis) {
    const FunctionCall call("split", {{"x", x}}, {{"size", size}, {"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("split", axis, x.rank());
    if (size < 1) throw ValueError(fmt::format("split: expected a size of at least 1, got {}", size));
    std::vector<Tensor> parts = parts_of(x, size, along);
    call.results(parts);
    return parts;
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis) {
    const FunctionCall call("chunk", {{"x", x}}, {{"chunks", chunks}, {"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("chunk", axis, x.rank());
    if (chunks < 1) throw ValueError(fmt::format("chunk: expected at least 1 chunk, got {}", chunks));
    std::vector<Tensor> parts = parts_of(x, std::max<std::int64_t>(1, (x.shape()[along] + chunks - 1) / chunks), along);
    call.results(parts);
    return parts;
}

std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("unbind", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("unbind", axis, x.rank());
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < x.shape()[along]; ++i) parts.push_back(select(x, along, i));
    call.results(parts);
    return parts;
}

namespace {

Tensor repeated(const char* name, const Tensor& x, const Dims& counts) {
    const FunctionCall call(name, {{"x", x}}, {{"counts", counts}});
    call.require_defined({"x"});
    const bool negative = std::ranges::any_of(counts, [](std::int64_t count) { return count < 0; });
    if (negative || counts.rank() < x.rank())
        throw ShapeError(fmt::format("{}: expected a count of at least 0 for each axis of {}, got {}", name,
                                     x.shape().str(), counts.str()));
    // Inserts an axis before each axis and repeats it: (1, n) to (count, n).
    const int added = counts.rank() - x.rank();
    Tensor y = x;
    Shape start;
    for (int i = 0; i < counts.rank(); ++i) start.push_back(i < added ? 1 : x.shape()[i - added]);
    y = reshape(y, start);
    for (int i = 0; i < counts.rank(); ++i) {
        if (counts[i] == 1) continue;
        Shape before, expanded, after;
        for (int j = 0; j < y.rank(); ++j) {
            if (j == i) before.push_back(1), expanded.push_back(counts[i]);
            before.push_back(y.shape()[j]);
            expanded.push_back(y.shape()[j]);
            after.push_back(j == i ? counts[i] * y.shape()[j] : y.shape()[j]);
        }
        y = reshape(expand(reshape(y, before), expanded), after);
    }
    return call.result(y);
}

}  // namespace

Tensor repeat(const Tensor& x, const Dims& counts) { return repeated("repeat", x, counts); }

Tensor tile(const Tensor& x, const Dims& counts) {
    const FunctionCall call("tile", {{"x", x}}, {{"counts", counts}});
    call.require_defined({"x"});
    Dims full_counts;
    for (int i = counts.rank(); i < x.rank(); ++i) full_counts.push_back(1);
    for (const std::int64_t count : counts) full_counts.push_back(count);
    return call.result(repeated("tile", x, full_counts));
}

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::int64_t axis) {
    const FunctionCall call("repeat_interleave", {{"x", x}}, {{"repeats", repeats}, {"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("repeat_interleave", axis, x.rank());
    if (repeats < 0) throw ValueError(fmt::format("repeat_interleave: expected at least 0 repeats, got {}", repeats));
    Shape expanded_shape, result_shape;
    for (int i = 0; i < x.rank(); ++i) {
        expanded_shape.push_back(x.shape()[i]);
        if (i == along) expanded_shape.push_back(repeats);
        result_shape.push_back(i == along ? x.shape()[i] * repeats : x.shape()[i]);
    }
    return call.result(reshape(expand(unsqueeze(x, along + 1), expanded_shape), result_shape));
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::int64_t axis) {
    const FunctionCall call("repeat_interleave", {{"x", x}, {"repeats", repeats}}, {{"axis", axis}});
    call.require_defined({"x", "repeats"});
    const int along = normalize_axis("repeat_interleave", axis, x.rank());
    ops::require_shape("repeat_interleave", "the repeats", repeats.shape(), {x.shape()[along]});
    std::vector<std::int64_t> indices;
    std::int64_t index = 0;
    for (const std::int64_t count : repeats.to(DType::i64).to_vector<std::int64_t>()) {
        if (count < 0)
            throw ValueError(fmt::format("repeat_interleave: expected repeats of at least 0, got {}", count));
        indices.insert(indices.end(), static_cast<std::size_t>(count), index++);
    }
    const auto total = static_cast<std::int64_t>(indices.size());
    return call.result(index_select(x, along, Tensor::from(indices, {total}).to(x.device())));
}

Tensor flip(const Tensor& x, const Dims& axes) {
    const FunctionCall call("flip", {{"x", x}}, {{"axes", axes}});
    call.require_defined({"x"});
    if (axes.rank() == 0) return call.result(x);
    Tensor y = x;
    for (const std::int64_t axis : ops::normalize_axes("flip", axes, x.rank())) {
        const auto along = static_cast<int>(axis);
        const std::int64_t n = x.shape()[along];
        if (n > 1) y = index_select(y, along, arange(n - 1, -1, -1, {DType::i64, x.device()}));
    }
    return call.result(y);
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& axes) {
    const FunctionCall call("roll", {{"x", x}}, {{"shifts", shifts}, {"axes", axes}});
    call.require_defined({"x"});
    if (axes.rank() == 0 && shifts.rank() == 1)
        return call.result(reshape(roll(reshape(x, {x.numel()}), shifts, {0}), x.shape()));
    if (shifts.rank() != axes.rank())
        throw ValueError(fmt::format("roll: expected as many shifts as axes, got {} and {}", shifts.str(), axes.str()));
    Tensor y = x;
    for (int i = 0; i < axes.rank(); ++i) {
        const int along = normalize_axis("roll", axes[i], x.rank());
        const std::int64_t n = x.shape()[along];
        if (n == 0) continue;
        const std::int64_t shift = ((shifts[i] % n) + n) % n;
        if (shift != 0) y = concat({slice(y, along, n - shift, n), slice(y, along, 0, n - shift)}, along);
    }
    return call.result(y);
}

Tensor rot90(const Tensor& x, std::int64_t k, std::int64_t axis_a, std::int64_t axis_b) {
    const FunctionCall call("rot90", {{"x", x}}, {{"k", k}, {"axis_a", axis_a}, {"axis_b", axis_b}});
    call.require_defined({"x"});
    const int a = normalize_axis("rot90", axis_a, x.rank()), b = normalize_axis("rot90", axis_b, x.rank());
    if (a == b) throw ValueError(fmt::format("rot90: expected two axes, got {} and {}", axis_a, axis_b));
    switch (((k % 4) + 4) % 4) {
        case 1:
            return call.result(transpose(flip(x, {b}), a, b));
        case 2:
            return call.result(flip(x, {a, b}));
        case 3:
            return call.result(flip(transpose(x, a, b), {b}));
        default:
            return call.result(x);
    }
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, std::string_view indexing) {
    LIST_CALL("meshgrid", axes, {"indexing", indexing});
    if (indexing != "ij" && indexing != "xy")
        throw ValueError(fmt::format("meshgrid: expected an indexing of \"ij\" or \"xy\", got \"{}\"", indexing));
    const auto rank = static_cast<int>(axes.size());
    const bool swapped = indexing == "xy" && rank > 1;
    Shape grid_shape;
    for (const Tensor& axis : axes) {
        if (axis.rank() > 1)
            throw ShapeError(fmt::format("meshgrid: expected tensors of one axis, got {}", axis.shape().str()));
        grid_shape.push_back(axis.numel());
    }
    if (swapped) std::swap(grid_shape[0], grid_shape[1]);
    std::vector<Tensor> grids;
    for (int i = 0; i < rank; ++i) {
        Shape shape;
        const int grid_axis = swapped && i < 2 ? 1 - i : i;
        for (int j = 0; j < rank; ++j) shape.push_back(j == grid_axis ? axes[static_cast<std::size_t>(i)].numel() : 1);
        grids.push_back(expand(reshape(axes[static_cast<std::size_t>(i)], shape), grid_shape));
    }
    call.results(grids);
    return grids;
}

Tensor cartesian_prod(const std::vector<Tensor>& tensors) {
    LIST_CALL("cartesian_prod", tensors, {"count", static_cast<std::int64_t>(tensors.size())});
    if (tensors.size() == 1) return call.result(tensors[0]);
    std::vector<Tensor> columns;
    for (const Tensor& grid : meshgrid(tensors)) columns.push_back(reshape(grid, {grid.numel()}));
    return call.result(stack(columns, 1));
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
    const FunctionCall call("tril", {{"x", x}}, {{"diagonal", diagonal}});
    call.require_defined({"x"});
    if (x.rank() < 2) throw ShapeError(fmt::format("tril: expected at least two axes, got {}", x.shape().str()));
    const TensorOptions options{DType::i64, x.device()};
    const Tensor rows = arange(0, x.shape()[-2], 1, options), columns = arange(0, x.shape()[-1], 1, options);
    return call.result(where(columns - unsqueeze(rows, 1) <= diagonal, x, zeros({}, {x.dtype(), x.device()})));
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
    const FunctionCall call("triu", {{"x", x}}, {{"diagonal", diagonal}});
    call.require_defined({"x"});
    if (x.rank() < 2) throw ShapeError(fmt::format("triu: expected at least two axes, got {}", x.shape().str()));
    const TensorOptions options{DType::i64, x.device()};
    const Tensor rows = arange(0, x.shape()[-2], 1, options), columns = arange(0, x.shape()[-1], 1, options);
    return call.result(where(columns - unsqueeze(rows, 1) >= diagonal, x, zeros({}, {x.dtype(), x.device()})));
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis_a, std::int64_t axis_b) {
    const FunctionCall call("diagonal", {{"x", x}}, {{"offset", offset}, {"axis_a", axis_a}, {"axis_b", axis_b}});
    call.require_defined({"x"});
    const int a = normalize_axis("diagonal", axis_a, x.rank()), b = normalize_axis("diagonal", axis_b, x.rank());
    if (a == b) throw ValueError(fmt::format("diagonal: expected two axes, got {} and {}", axis_a, axis_b));
    // With the two axes last, the diagonal is every (columns + 1)-th element of the merged axis.
    Dims order;
    for (int i = 0; i < x.rank(); ++i)
        if (i != a && i != b) order.push_back(i);
    order.push_back(a);
    order.push_back(b);
    const Tensor permuted = permute(x, order);
    const std::int64_t rows = permuted.shape()[-2], columns = permuted.shape()[-1];
    const std::int64_t count =
        std::max<std::int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
    Shape merged_shape;
    for (int i = 0; i + 2 < x.rank(); ++i) merged_shape.push_back(permuted.shape()[i]);
    merged_shape.push_back(rows * columns);
    const std::int64_t first = offset >= 0 ? offset : -offset * columns;
    if (count == 0) return call.result(slice(reshape(permuted, merged_shape), -1, 0, 0));
    return call.result(
        slice(reshape(permuted, merged_shape), -1, first, first + (count - 1) * (columns + 1) + 1, columns + 1));
}

Tensor diag_embed(const Tensor& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
    const FunctionCall call("diag_embed", {{"x", x}}, {{"offset", offset}, {"axis1", axis1}, {"axis2", axis2}});
    call.require_defined({"x"});
    if (x.rank() < 1) throw ShapeError("diag_embed: expected at least one axis, got a tensor without axes");
    const int first = normalize_axis("diag_embed", axis1, x.rank() + 1),
              second = normalize_axis("diag_embed", axis2, x.rank() + 1);
    if (first == second)
        throw ShapeError(fmt::format("diag_embed: expected two different axes, got {} and {}", axis1, axis2));
    const std::int64_t n = x.shape()[-1], size = n + std::abs(offset);
    const TensorOptions options{DType::i64, x.device()};
    // Row i, column j has element i (below the main diagonal: j) if j - i is the offset.
    const Tensor rows = unsqueeze(arange(0, size, 1, options), 1), columns = arange(0, size, 1, options);
    Dims before, after;
    for (int i = 0; i < x.rank(); ++i) before.push_back(0), after.push_back(i + 1 == x.rank() ? size - n : 0);
    const Tensor padded = pad(x, before, after);
    const Tensor unsqueezed = unsqueeze(padded, offset >= 0 ? -1 : -2);
    Shape shape = x.shape();
    shape[-1] = size;
    shape.push_back(size);
    const Tensor matrix =
        where(columns - rows == offset, expand(unsqueezed, shape), zeros({}, {x.dtype(), x.device()}));
    return call.result(movedim(matrix, Dims{-2, -1}, Dims{first, second}));
}

Tensor diag(const Tensor& x, std::int64_t offset) {
    const FunctionCall call("diag", {{"x", x}}, {{"offset", offset}});
    call.require_defined({"x"});
    if (x.rank() == 1) return call.result(diag_embed(x, offset));
    if (x.rank() == 2) return call.result(diagonal(x, offset));
    throw ShapeError(fmt::format("diag: expected one or two axes, got {}", x.shape().str()));
}

namespace {

/// Checks that x has the shape (..., C, H, W) and that the factor divides its sizes.
void require_blocks(const char* name, const Tensor& x, bool fits, std::int64_t block) {
    if (x.rank() < 3 || block < 1 || !fits)
        throw ShapeError(
            fmt::format("{}: expected x of shape (..., C, H, W) with sizes divisible by the factor {}, got {}", name,
                        block, x.shape().str()));
}

Tensor permuted_last(const Tensor& x, int leading, std::initializer_list<int> order) {
    Dims axes;
    for (int i = 0; i < leading; ++i) axes.push_back(i);
    for (const int axis : order) axes.push_back(leading + axis);
    return permute(x, axes);
}

Shape leading_of(const Tensor& x) {
    Shape shape;
    for (int i = 0; i + 3 < x.rank(); ++i) shape.push_back(x.shape()[i]);
    return shape;
}

Tensor to_space(const char* name, const Tensor& x, std::int64_t r, bool blocks_first) {
    ops::check_int32_range(name, "the factor", {r});  // its square is below 2^63
    require_blocks(name, x, r >= 1 && x.rank() >= 3 && x.shape()[-3] % (r * r) == 0, r);
    const Shape leading = leading_of(x);
    const std::int64_t c = x.shape()[-3] / (r * r), h = x.shape()[-2], w = x.shape()[-1];
    const Tensor blocks =
        reshape(x, detail::append_dims(leading, blocks_first ? std::initializer_list<std::int64_t>{r, r, c, h, w}
                                                             : std::initializer_list<std::int64_t>{c, r, r, h, w}));
    const Tensor permuted = blocks_first ? permuted_last(blocks, leading.rank(), {2, 3, 0, 4, 1})
                                         : permuted_last(blocks, leading.rank(), {0, 3, 1, 4, 2});
    return reshape(permuted, detail::append_dims(leading, {c, h * r, w * r}));
}

Tensor from_space(const char* name, const Tensor& x, std::int64_t r, bool blocks_first) {
    ops::check_int32_range(name, "the factor", {r});
    require_blocks(name, x, r >= 1 && x.rank() >= 3 && x.shape()[-2] % r == 0 && x.shape()[-1] % r == 0, r);
    const Shape leading = leading_of(x);
    const std::int64_t c = x.shape()[-3], h = x.shape()[-2] / r, w = x.shape()[-1] / r;
    const Tensor blocks = reshape(x, detail::append_dims(leading, {c, h, r, w, r}));
    const Tensor permuted = blocks_first ? permuted_last(blocks, leading.rank(), {2, 4, 0, 1, 3})
                                         : permuted_last(blocks, leading.rank(), {0, 2, 4, 1, 3});
    return reshape(permuted, detail::append_dims(leading, {c * r * r, h, w}));
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor) {
    const FunctionCall call("pixel_shuffle", {{"x", x}}, {{"upscale_factor", upscale_factor}});
    call.require_defined({"x"});
    return call.result(to_space("pixel_shuffle", x, upscale_factor, false));
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale_factor) {
    const FunctionCall call("pixel_unshuffle", {{"x", x}}, {{"downscale_factor", downscale_factor}});
    call.require_defined({"x"});
    return call.result(from_space("pixel_unshuffle", x, downscale_factor, false));
}

Tensor depth_to_space(const Tensor& x, std::int64_t block) {
    const FunctionCall call("depth_to_space", {{"x", x}}, {{"block", block}});
    call.require_defined({"x"});
    return call.result(to_space("depth_to_space", x, block, true));
}

Tensor space_to_depth(const Tensor& x, std::int64_t block) {
    const FunctionCall call("space_to_depth", {{"x", x}}, {{"block", block}});
    call.require_defined({"x"});
    return call.result(from_space("space_to_depth", x, block, true));
}

}  // namespace declivity
