// Shape functions with PyTorch's names, composed of those of shape.hpp.
#include <declivity/functions/arrangement.hpp>

#include <algorithm>
#include <limits>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/list_call.hpp"
#include "functions/support/ragged.hpp"
#include "ops/support/int32_range.hpp"

namespace declivity {
namespace {

/// x with at least this many axes.
Tensor with_axes(const Tensor& x, int rank) {
    if (x.rank() >= rank) return x;
    if (x.rank() == 0) return reshape(x, Shape::filled(rank, 1));
    if (x.rank() == 2) return reshape(x, {x.size(0), x.size(1), 1});
    return rank == 2 ? reshape(x, {1, x.numel()}) : reshape(x, {1, x.numel(), 1});
}

std::vector<Tensor> each_with_axes(const std::vector<Tensor>& parts, int rank) {
    std::vector<Tensor> expanded;
    for (const Tensor& part : parts) expanded.push_back(with_axes(part, rank));
    return expanded;
}

void require_joinable(const char* name, const std::vector<Tensor>& parts, int along) {
    for (const Tensor& part : parts) {
        Shape shape = part.shape();
        if (shape.rank() == parts[0].rank()) shape[along] = parts[0].size(along);
        if (!(shape == parts[0].shape()))
            throw ShapeError(fmt::format("{}: expected parts that differ along axis {} only, got {} and {}", name,
                                         along, parts[0].shape().str(), part.shape().str()));
    }
}

}  // namespace

Tensor atleast_1d(const Tensor& x) {
    const FunctionCall call("atleast_1d", {{"x", x}});
    call.require_defined({"x"});
    return call.result(with_axes(x, 1));
}

Tensor atleast_2d(const Tensor& x) {
    const FunctionCall call("atleast_2d", {{"x", x}});
    call.require_defined({"x"});
    return call.result(with_axes(x, 2));
}

Tensor atleast_3d(const Tensor& x) {
    const FunctionCall call("atleast_3d", {{"x", x}});
    call.require_defined({"x"});
    return call.result(with_axes(x, 3));
}

Tensor hstack(const std::vector<Tensor>& parts) {
    LIST_CALL("hstack", parts, {"count", static_cast<std::int64_t>(parts.size())});
    std::vector<Tensor> expanded = each_with_axes(parts, 1);
    const int along = expanded[0].rank() == 1 ? 0 : 1;
    require_joinable("hstack", expanded, along);
    return call.result(concat(std::move(expanded), along));
}

Tensor vstack(const std::vector<Tensor>& parts) {
    LIST_CALL("vstack", parts, {"count", static_cast<std::int64_t>(parts.size())});
    std::vector<Tensor> expanded = each_with_axes(parts, 2);
    require_joinable("vstack", expanded, 0);
    return call.result(concat(std::move(expanded), 0));
}

Tensor dstack(const std::vector<Tensor>& parts) {
    LIST_CALL("dstack", parts, {"count", static_cast<std::int64_t>(parts.size())});
    std::vector<Tensor> expanded = each_with_axes(parts, 3);
    require_joinable("dstack", expanded, 2);
    return call.result(concat(std::move(expanded), 2));
}

Tensor block_diag(const std::vector<Tensor>& parts) {
    LIST_CALL("block_diag", parts, {"count", static_cast<std::int64_t>(parts.size())});
    std::int64_t columns = 0;
    for (const Tensor& part : parts) {
        if (part.rank() > 2)
            throw ShapeError(fmt::format("block_diag: expected parts of at most two axes, got {}", part.shape().str()));
        columns += with_axes(part, 2).size(1);
    }
    std::vector<Tensor> rows;
    std::int64_t column = 0;
    for (const Tensor& part : parts) {
        const Tensor block = with_axes(part, 2);
        rows.push_back(pad(block, {0, column}, {0, columns - column - block.size(1)}));
        column += block.size(1);
    }
    return call.result(concat(std::move(rows), 0));
}

Tensor diagflat(const Tensor& x, std::int64_t offset) {
    const FunctionCall call("diagflat", {{"x", x}}, {{"offset", offset}});
    call.require_defined({"x"});
    return call.result(diag(reshape(x, {x.numel()}), offset));
}

Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
    const FunctionCall call("narrow", {{"x", x}}, {{"axis", axis}, {"start", start}, {"length", length}});
    call.require_defined({"x"});
    const int along = normalize_axis("narrow", axis, x.rank());
    const std::int64_t size = x.size(along), first = start < 0 ? start + size : start;
    if (first < 0 || first > size || length < 0 || length > size - first)
        throw ValueError(fmt::format("narrow: expected a range within axis {} of {}, got {} elements from {} on", along,
                                     x.shape().str(), length, start));
    return call.result(slice(x, along, first, first + length));
}

std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections, std::int64_t axis) {
    const FunctionCall call("tensor_split", {{"x", x}}, {{"sections", sections}, {"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("tensor_split", axis, x.rank());
    ops::check_int32_range("tensor_split", "the sections", {sections});
    if (sections < 1) throw ValueError(fmt::format("tensor_split: expected at least 1 section, got {}", sections));
    const std::int64_t base_size = x.size(along) / sections, extra = x.size(along) % sections;
    std::vector<Tensor> parts;
    for (std::int64_t i = 0, from = 0; i < sections; ++i) {
        const std::int64_t to = from + base_size + (i < extra ? 1 : 0);
        parts.push_back(slice(x, along, from, to));
        from = to;
    }
    call.results(parts);
    return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<std::int64_t>& indices, std::int64_t axis) {
    const FunctionCall call("tensor_split", {{"x", x}}, {{"indices", indices}, {"axis", axis}});
    call.require_defined({"x"});
    const int along = normalize_axis("tensor_split", axis, x.rank());
    const std::int64_t size = x.size(along);
    std::vector<Tensor> parts;
    std::int64_t from = 0;
    const auto cut = [&](std::int64_t to) {
        parts.push_back(slice(x, along, from, std::max(from, to)));
        from = to;
    };
    for (const std::int64_t index : indices) cut(std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size));
    cut(size);
    call.results(parts);
    return parts;
}

Tensor swapaxes(const Tensor& x, std::int64_t axis_a, std::int64_t axis_b) {
    const FunctionCall call("swapaxes", {{"x", x}}, {{"axis_a", axis_a}, {"axis_b", axis_b}});
    call.require_defined({"x"});
    return call.result(transpose(x, axis_a, axis_b));
}

Tensor moveaxis(const Tensor& x, std::int64_t from, std::int64_t to) { return moveaxis(x, Dims{from}, Dims{to}); }

Tensor moveaxis(const Tensor& x, const Dims& from, const Dims& to) {
    const FunctionCall call("moveaxis", {{"x", x}}, {{"from", from}, {"to", to}});
    call.require_defined({"x"});
    return call.result(movedim(x, from, to));
}

Tensor expand_as(const Tensor& x, const Tensor& other) {
    const FunctionCall call("expand_as", {{"x", x}, {"other", other}});
    call.require_defined({"x", "other"});
    return call.result(expand(x, other.shape()));
}

Tensor reshape_as(const Tensor& x, const Tensor& other) {
    const FunctionCall call("reshape_as", {{"x", x}, {"other", other}});
    call.require_defined({"x", "other"});
    return call.result(reshape(x, other.shape()));
}

Tensor view_as(const Tensor& x, const Tensor& other) {
    const FunctionCall call("view_as", {{"x", x}, {"other", other}});
    call.require_defined({"x", "other"});
    return call.result(reshape(x, other.shape()));
}

Tensor ravel(const Tensor& x) {
    const FunctionCall call("ravel", {{"x", x}});
    call.require_defined({"x"});
    return call.result(reshape(x, {x.numel()}));
}

Tensor fliplr(const Tensor& x) {
    const FunctionCall call("fliplr", {{"x", x}});
    call.require_defined({"x"});
    if (x.rank() < 2) throw ShapeError(fmt::format("fliplr: expected at least two axes, got {}", x.shape().str()));
    return call.result(flip(x, {1}));
}

Tensor flipud(const Tensor& x) {
    const FunctionCall call("flipud", {{"x", x}});
    call.require_defined({"x"});
    if (x.rank() < 1) throw ShapeError("flipud: expected at least one axis, got a tensor without axes");
    return call.result(flip(x, {0}));
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, std::int64_t axis) {
    const FunctionCall call("take_along_dim", {{"x", x}, {"index", index}}, {{"axis", axis}});
    call.require_defined({"x", "index"});
    return call.result(take_along_axis(x, index, axis));
}

Tensor take_along_dim(const Tensor& x, const Tensor& index) {
    const FunctionCall call("take_along_dim", {{"x", x}, {"index", index}});
    call.require_defined({"x", "index"});
    return call.result(take_along_axis(reshape(x, {x.numel()}), reshape(index, {index.numel()}), 0));
}

Tensor argwhere(const Tensor& x) {
    const FunctionCall call("argwhere", {{"x", x}});
    call.require_defined({"x"});
    return call.result(nonzero(x));
}

namespace {

/// Binomial coefficient of n and r.
std::int64_t binomial(std::int64_t n, std::int64_t r, bool with_replacement) {
    if (with_replacement && r > 0) n = n == 0 ? 0 : n + r - 1;
    if (r > n) return 0;
    std::int64_t count = 1;
    for (std::int64_t i = 1; i <= r; ++i) {
        if (count > std::numeric_limits<std::int64_t>::max() / (n - r + i))
            throw ValueError(fmt::format(
                "combinations: expected a number of combinations that fits into 63 bits, got {} of {}", r, n));
        count = count * (n - r + i) / i;
    }
    return count;
}

}  // namespace

Tensor combinations(const Tensor& x, std::int64_t r, bool with_replacement) {
    const FunctionCall call("combinations", {{"x", x}}, {{"r", r}, {"with_replacement", with_replacement}});
    call.require_defined({"x"});
    ops::require_rank("combinations", "x", x.shape(), 1, "N");
    if (r < 0) throw ValueError(fmt::format("combinations: expected r of at least 0, got {}", r));
    if (r == 0) return call.result(slice(x, 0, 0, 0));
    ops::check_int32_range("combinations", "r", {r});
    if (x.numel() == 0 || (!with_replacement && r > x.numel())) return call.result(reshape(slice(x, 0, 0, 0), {0, r}));
    // Rows of k indices grow by each index that may follow their last one.
    const std::int64_t n = x.numel(), step = with_replacement ? 0 : 1;
    std::vector<Tensor> columns{arange(0, n, 1, {DType::i64, x.device()})};
    for (std::int64_t k = 2; k <= r; ++k) {
        const Tensor last = columns.back() + step;
        const auto [row, position] = detail::ragged_indices(n - last, binomial(n, k, with_replacement));
        for (Tensor& column : columns) column = index_select(column, 0, row);
        columns.push_back(index_select(last, 0, row) + position);
    }
    const std::int64_t count = columns.back().numel();
    return call.result(reshape(index_select(x, 0, reshape(stack(columns, 1), {count * r})), {count, r}));
}

}  // namespace declivity
