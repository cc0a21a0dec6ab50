// Functions of masks and labels: selection and counting.
#include <algorithm>
#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/flat_indices.hpp"
#include "functions/support/rows.hpp"

namespace declivity {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

void require_mask(const char* function, const Tensor& mask, const Tensor& x) {
    if (mask.dtype() != DType::boolean)
        throw TypeError(
            fmt::format("{}: expected a mask of bool, got {} (compare, as in x > 0)", function, name_of(mask.dtype())));
    ops::require_same_device(function, x.device(), mask.device());
}

/// For each element of a row of bools the number of true ones before it, or -1 if it is false.
Tensor numbered(const Tensor& row) {
    const NoGrad no_grad;
    return where(row, cumsum(row, 0) - 1, -1);
}

/// Indices of the true elements of a row of bools. Synchronises.
Tensor places_of(const char* name, const Tensor& row) {
    const NoGrad no_grad;
    const std::int64_t count = row.numel() == 0 ? 0 : sum(row).item<std::int64_t>();
    return detail::last_rows(name, numbered(row), count);
}

Tensor flat(const Tensor& x) { return reshape(x, {x.numel()}); }

/// Maximum of non-negative integers, with the check in the same pass. Synchronises.
std::int64_t largest_of(const char* name, const Tensor& x) {
    constexpr std::int64_t negative = std::numeric_limits<std::int64_t>::max();
    const Tensor wide = x.to(DType::i64);
    const auto most = max(where(wide < 0, negative, wide)).item<std::int64_t>();
    if (most == negative)
        throw ValueError(
            fmt::format("{}: expected integers of at least 0, got {}", name, min(wide).item<std::int64_t>()));
    return most;
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, const TensorOrScalar& value) {
    const FunctionCall call("masked_fill", {{"x", x}, {"mask", mask}, {"value", value.tensor()}});
    call.require_defined({"x", "mask"});
    require_mask("masked_fill", mask, x);
    if (value.is_scalar()) return call.result(where(mask, full({}, value.scalar(), {x.dtype(), x.device()}), x));
    call.require_defined({"value"});
    ops::require_shape("masked_fill", "the value", value.tensor().shape(), {});
    return call.result(where(mask, value.tensor().to(x.dtype()), x));
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
    const FunctionCall call("masked_select", {{"x", x}, {"mask", mask}});
    call.require_defined({"x", "mask"});
    require_mask("masked_select", mask, x);
    const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
    const Tensor places = places_of("masked_select", flat(expand(mask, shape)));
    const Tensor column = reshape(expand(x, shape), {shape.numel(), 1});
    return call.result(flat(detail::take_rows("masked_select", column, places, kMissing)));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
    const FunctionCall call("masked_scatter", {{"x", x}, {"mask", mask}, {"source", source}});
    call.require_defined({"x", "mask", "source"});
    require_mask("masked_scatter", mask, x);
    if (source.dtype() != x.dtype())
        throw TypeError(fmt::format("masked_scatter: expected a source of x's type, {}, got {}", name_of(x.dtype()),
                                    name_of(source.dtype())));
    const Shape shape = broadcast_shapes("masked_scatter", x.shape(), mask.shape());
    const Tensor wide = expand(mask, shape), numbers = numbered(flat(wide));
    const Tensor taken = detail::take_rows("masked_scatter", reshape(source, {source.numel(), 1}), numbers, kMissing);
    return call.result(where(wide, reshape(taken, shape), expand(x, shape)));
}

Tensor nonzero(const Tensor& x) {
    const FunctionCall call("nonzero", {{"x", x}});
    call.require_defined({"x"});
    const Tensor places = places_of("nonzero", flat(x.detach() != 0));
    std::vector<Tensor> columns;
    const Dims strides = dense_strides(x.shape());
    for (int i = 0; i < x.rank(); ++i)
        columns.push_back(floor_divide(places, std::max<std::int64_t>(1, strides[i])) %
                          std::max<std::int64_t>(1, x.shape()[i]));
    if (columns.empty()) return call.result(zeros({places.numel(), 0}, {DType::i64, x.device()}));
    return call.result(stack(columns, 1));
}

Tensor one_hot(const Tensor& labels, std::int64_t num_classes) {
    const FunctionCall call("one_hot", {{"labels", labels}}, {{"num_classes", num_classes}});
    call.require_defined({"labels"});
    detail::require_index("one_hot", labels, labels);
    if (num_classes < -1 || (num_classes == -1 && labels.numel() == 0))
        throw ValueError(
            fmt::format("one_hot: expected a number of classes, got {} for {} labels", num_classes, labels.numel()));
    if (num_classes == -1) num_classes = largest_of("one_hot", labels) + 1;
    return call.result(
        (unsqueeze(labels.to(DType::i64), -1) == arange(0, num_classes, 1, {DType::i64, labels.device()}))
            .to(DType::i64));
}

Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t minlength) {
    const FunctionCall call("bincount", {{"x", x}, {"weights", weights}}, {{"minlength", minlength}});
    call.require_defined({"x"});
    detail::require_index("bincount", x, x);
    ops::require_rank("bincount", "x", x.shape(), 1, "N");
    if (weights.defined()) ops::require_shape("bincount", "the weights", weights.shape(), x.shape());
    if (minlength < 0) throw ValueError(fmt::format("bincount: expected a minlength of at least 0, got {}", minlength));
    std::int64_t size = minlength;
    if (x.numel() > 0) size = std::max(size, largest_of("bincount", x) + 1);
    const Tensor each = weights.defined() ? weights : ones(x.shape(), {DType::i64, x.device()});
    return call.result(flat(detail::sum_rows("bincount", reshape(each, {x.numel(), 1}), x, size)));
}

namespace {

/// Index tensors, broadcast to one shape: row indices of x with the indexed axes in front.
struct Advanced {
    Tensor numbers;
    Shape shape;  ///< shape of the indices
    Dims order;   ///< with the indexed axes first
    int indexed = 0, first = 0;
    bool apart = false;  ///< the indexed axes are not adjacent
    std::int64_t rows = 1, each = 1;
    Shape others;

    Advanced(const char* name, const Tensor& x, const std::vector<Tensor>& given) {
        std::vector<Tensor> all;
        for (const Tensor& operand : given) {
            if (!operand.defined() || operand.dtype() != DType::boolean) {
                all.push_back(operand);
                continue;
            }
            // Indices of its true elements, one column for each of its axes.
            for (int i = 0; i < operand.rank(); ++i) {
                const auto at = static_cast<int>(all.size()) + i;
                if (at >= x.rank() || x.shape()[at] != operand.shape()[i])
                    throw ShapeError(fmt::format("{}: expected a mask of axes of x, {}, got {} at axis {}", name,
                                                 x.shape().str(), operand.shape().str(), all.size()));
            }
            const Tensor places = nonzero(operand);
            for (int i = 0; i < operand.rank(); ++i) all.push_back(select(places, 1, i));
        }
        if (static_cast<int>(all.size()) > x.rank())
            throw ShapeError(fmt::format("{}: expected at most {} indices (x is {}), got {}", name, x.rank(),
                                         x.shape().str(), all.size()));
        all.resize(static_cast<std::size_t>(x.rank()));
        int last = -1;
        for (int i = 0; i < x.rank(); ++i) {
            const Tensor& one = all[static_cast<std::size_t>(i)];
            if (!one.defined()) continue;
            detail::require_index(name, one, x);
            shape = indexed == 0 ? one.shape() : broadcast_shapes(name, shape, one.shape());
            if (indexed == 0) first = i;
            apart = apart || (last >= 0 && last + 1 != i);
            last = i;
            ++indexed;
            order.push_back(i);
        }
        if (indexed == 0)
            throw ValueError(fmt::format("{}: expected at least one index that is a tensor, got none", name));
        Tensor outside;
        for (const std::int64_t axis : order) {
            const std::int64_t size = x.shape()[static_cast<int>(axis)];
            const Tensor one = detail::from_front(all[static_cast<std::size_t>(axis)].to(DType::i64), size);
            const Tensor beyond = detail::out_of_range_mask(one, size);
            outside = outside.defined() ? bitwise_or(outside, beyond) : beyond;
            numbers = numbers.defined() ? numbers * size + one : one;
            rows *= size;
        }
        numbers = reshape(expand(bitwise_or(numbers, outside), shape), {shape.numel()});
        for (int i = 0; i < x.rank(); ++i)
            if (!all[static_cast<std::size_t>(i)].defined()) {
                order.push_back(i);
                others.push_back(x.shape()[i]);
                each *= x.shape()[i];
            }
    }

    [[nodiscard]] Tensor table(const Tensor& x) const { return reshape(permute(x, order), {rows, each}); }
    [[nodiscard]] Tensor from_table(const Tensor& table, const Tensor& x) const {
        Shape turned;
        Dims inverse = order;
        for (int i = 0; i < x.rank(); ++i) {
            turned.push_back(x.shape()[static_cast<int>(order[i])]);
            inverse[static_cast<int>(order[i])] = i;
        }
        return permute(reshape(table, turned), inverse);
    }
    /// (indices, others) with the axes of the indices at their position, and back.
    [[nodiscard]] Tensor placed(const Tensor& rows_of, bool back) const {
        const int before = apart ? 0 : first, own = shape.rank(), all = own + others.rank();
        Shape flat_shape = shape, placed_shape;
        for (const std::int64_t size : others) flat_shape.push_back(size);
        Dims to, from;
        for (int i = 0; i < before; ++i) to.push_back(own + i);
        for (int i = 0; i < own; ++i) to.push_back(i);
        for (int i = own + before; i < all; ++i) to.push_back(i);
        from = to;
        for (int i = 0; i < all; ++i) from[static_cast<int>(to[i])] = i;
        if (!back) return permute(reshape(rows_of, flat_shape), to);
        return reshape(permute(rows_of, from), {shape.numel(), each});
    }
    [[nodiscard]] Shape result() const {
        Shape out;
        const int before = apart ? 0 : first;
        for (int i = 0; i < before; ++i) out.push_back(others[i]);
        for (const std::int64_t size : shape) out.push_back(size);
        for (int i = before; i < others.rank(); ++i) out.push_back(others[i]);
        return out;
    }
};

}  // namespace

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) {
    const CallInput inputs[] = {{"x", x}, {"indices", std::span<const Tensor>(indices)}};
    const FunctionCall call("index", "index", inputs, {});
    call.require_defined({"x"});
    const Advanced places("index", x, indices);
    return call.result(places.placed(detail::take_rows("index", places.table(x), places.numbers, kMissing), false));
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
    const CallInput inputs[] = {{"x", x}, {"indices", std::span<const Tensor>(indices)}, {"values", values}};
    const CallAttribute attributes[] = {{"accumulate", accumulate}};
    const FunctionCall call("index_put", "index_put", inputs, attributes);
    call.require_defined({"x", "values"});
    if (values.dtype() != x.dtype())
        throw TypeError(fmt::format("index_put: expected values of x's type, {}, got {}", name_of(x.dtype()),
                                    name_of(values.dtype())));
    const Advanced places("index_put", x, indices);
    const Tensor rows = places.placed(expand(values, places.result()), true), table = places.table(x);
    if (accumulate)
        return call.result(places.from_table(detail::sum_rows_onto("index_put", table, rows, places.numbers), x));
    const Tensor last = detail::last_rows("index_put", places.numbers, places.rows);
    const Tensor taken = detail::take_rows("index_put", rows, last, 0);
    return call.result(places.from_table(where(reshape(last >= 0, {-1, 1}), taken, table), x));
}

}  // namespace declivity
