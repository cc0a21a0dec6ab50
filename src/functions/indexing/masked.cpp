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
Tensor count_before(const Tensor& mask) {
    const NoGrad no_grad;
    return where(mask, cumsum(mask, 0) - 1, -1);
}

/// Indices of the true elements of a row of bools. Synchronises.
Tensor true_indices(const char* name, const Tensor& mask) {
    const NoGrad no_grad;
    const std::int64_t count = mask.numel() == 0 ? 0 : sum(mask).item<std::int64_t>();
    return detail::last_occurrences(name, count_before(mask), count);
}

Tensor flat(const Tensor& x) { return reshape(x, {x.numel()}); }

/// Maximum of non-negative integers, with the check in the same pass. Synchronises.
std::int64_t largest_of(const char* name, const Tensor& x) {
    constexpr std::int64_t marker = std::numeric_limits<std::int64_t>::max();
    const Tensor values = x.to(DType::i64);
    const auto largest = max(where(values < 0, marker, values)).item<std::int64_t>();
    if (largest == marker)
        throw ValueError(
            fmt::format("{}: expected integers of at least 0, got {}", name, min(values).item<std::int64_t>()));
    return largest;
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
    const Tensor indices = true_indices("masked_select", flat(expand(mask, shape)));
    const Tensor column = reshape(expand(x, shape), {shape.numel(), 1});
    return call.result(flat(detail::gather_rows("masked_select", column, indices, kMissing)));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
    const FunctionCall call("masked_scatter", {{"x", x}, {"mask", mask}, {"source", source}});
    call.require_defined({"x", "mask", "source"});
    require_mask("masked_scatter", mask, x);
    if (source.dtype() != x.dtype())
        throw TypeError(fmt::format("masked_scatter: expected a source of x's type, {}, got {}", name_of(x.dtype()),
                                    name_of(source.dtype())));
    const Shape shape = broadcast_shapes("masked_scatter", x.shape(), mask.shape());
    const Tensor full_mask = expand(mask, shape), source_rows = count_before(flat(full_mask));
    const Tensor gathered =
        detail::gather_rows("masked_scatter", reshape(source, {source.numel(), 1}), source_rows, kMissing);
    return call.result(where(full_mask, reshape(gathered, shape), expand(x, shape)));
}

Tensor nonzero(const Tensor& x) {
    const FunctionCall call("nonzero", {{"x", x}});
    call.require_defined({"x"});
    const Tensor indices = true_indices("nonzero", flat(x.detach() != 0));
    std::vector<Tensor> columns;
    const Dims strides = dense_strides(x.shape());
    for (int i = 0; i < x.rank(); ++i)
        columns.push_back(floor_divide(indices, std::max<std::int64_t>(1, strides[i])) %
                          std::max<std::int64_t>(1, x.shape()[i]));
    if (columns.empty()) return call.result(zeros({indices.numel(), 0}, {DType::i64, x.device()}));
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
    const Tensor increments = weights.defined() ? weights : ones(x.shape(), {DType::i64, x.device()});
    return call.result(flat(detail::scatter_add_rows("bincount", reshape(increments, {x.numel(), 1}), x, size)));
}

namespace {

/// Index tensors, broadcast to one shape: row indices of x with the indexed axes in front.
struct AdvancedIndex {
    Tensor row_indices;
    Shape index_shape;  ///< shape of the indices
    Dims order;         ///< with the indexed axes first
    int indexed = 0, first = 0;
    bool separated = false;  ///< the indexed axes are not adjacent
    std::int64_t rows = 1, row_size = 1;
    Shape other_sizes;

    AdvancedIndex(const char* name, const Tensor& x, const std::vector<Tensor>& indices) {
        std::vector<Tensor> per_axis;
        for (const Tensor& entry : indices) {
            if (!entry.defined() || entry.dtype() != DType::boolean) {
                per_axis.push_back(entry);
                continue;
            }
            // Indices of its true elements, one column for each of its axes.
            for (int i = 0; i < entry.rank(); ++i) {
                const auto x_axis = static_cast<int>(per_axis.size()) + i;
                if (x_axis >= x.rank() || x.shape()[x_axis] != entry.shape()[i])
                    throw ShapeError(fmt::format("{}: expected a mask of axes of x, {}, got {} at axis {}", name,
                                                 x.shape().str(), entry.shape().str(), per_axis.size()));
            }
            const Tensor positions = nonzero(entry);
            for (int i = 0; i < entry.rank(); ++i) per_axis.push_back(select(positions, 1, i));
        }
        if (static_cast<int>(per_axis.size()) > x.rank())
            throw ShapeError(fmt::format("{}: expected at most {} indices (x is {}), got {}", name, x.rank(),
                                         x.shape().str(), per_axis.size()));
        per_axis.resize(static_cast<std::size_t>(x.rank()));
        int last = -1;
        for (int i = 0; i < x.rank(); ++i) {
            const Tensor& index = per_axis[static_cast<std::size_t>(i)];
            if (!index.defined()) continue;
            detail::require_index(name, index, x);
            index_shape = indexed == 0 ? index.shape() : broadcast_shapes(name, index_shape, index.shape());
            if (indexed == 0) first = i;
            separated = separated || (last >= 0 && last + 1 != i);
            last = i;
            ++indexed;
            order.push_back(i);
        }
        if (indexed == 0)
            throw ValueError(fmt::format("{}: expected at least one index that is a tensor, got none", name));
        Tensor out_of_range;
        for (const std::int64_t axis : order) {
            const std::int64_t size = x.shape()[static_cast<int>(axis)];
            const Tensor wrapped = detail::wrap_negative(per_axis[static_cast<std::size_t>(axis)].to(DType::i64), size);
            const Tensor mask = detail::out_of_range_mask(wrapped, size);
            out_of_range = out_of_range.defined() ? bitwise_or(out_of_range, mask) : mask;
            row_indices = row_indices.defined() ? row_indices * size + wrapped : wrapped;
            rows *= size;
        }
        row_indices = reshape(expand(bitwise_or(row_indices, out_of_range), index_shape), {index_shape.numel()});
        for (int i = 0; i < x.rank(); ++i)
            if (!per_axis[static_cast<std::size_t>(i)].defined()) {
                order.push_back(i);
                other_sizes.push_back(x.shape()[i]);
                row_size *= x.shape()[i];
            }
    }

    [[nodiscard]] Tensor table(const Tensor& x) const { return reshape(permute(x, order), {rows, row_size}); }
    [[nodiscard]] Tensor from_table(const Tensor& table, const Tensor& x) const {
        Shape permuted_shape;
        Dims inverse = order;
        for (int i = 0; i < x.rank(); ++i) {
            permuted_shape.push_back(x.shape()[static_cast<int>(order[i])]);
            inverse[static_cast<int>(order[i])] = i;
        }
        return permute(reshape(table, permuted_shape), inverse);
    }
    /// (indices, others) with the axes of the indices at their position, and back.
    [[nodiscard]] Tensor move_index_axes(const Tensor& values, bool to_rows) const {
        const int leading = separated ? 0 : first, index_rank = index_shape.rank(),
                  rank = index_rank + other_sizes.rank();
        Shape flat_shape = index_shape;
        for (const std::int64_t size : other_sizes) flat_shape.push_back(size);
        Dims to, from;
        for (int i = 0; i < leading; ++i) to.push_back(index_rank + i);
        for (int i = 0; i < index_rank; ++i) to.push_back(i);
        for (int i = index_rank + leading; i < rank; ++i) to.push_back(i);
        from = to;
        for (int i = 0; i < rank; ++i) from[static_cast<int>(to[i])] = i;
        if (!to_rows) return permute(reshape(values, flat_shape), to);
        return reshape(permute(values, from), {index_shape.numel(), row_size});
    }
    [[nodiscard]] Shape result_shape() const {
        Shape out;
        const int leading = separated ? 0 : first;
        for (int i = 0; i < leading; ++i) out.push_back(other_sizes[i]);
        for (const std::int64_t size : index_shape) out.push_back(size);
        for (int i = leading; i < other_sizes.rank(); ++i) out.push_back(other_sizes[i]);
        return out;
    }
};

}  // namespace

Tensor index(const Tensor& x, const std::vector<Tensor>& indices) {
    const CallInput inputs[] = {{"x", x}, {"indices", std::span<const Tensor>(indices)}};
    const FunctionCall call("index", "index", inputs, {});
    call.require_defined({"x"});
    const AdvancedIndex advanced("index", x, indices);
    return call.result(advanced.move_index_axes(
        detail::gather_rows("index", advanced.table(x), advanced.row_indices, kMissing), false));
}

Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate) {
    const CallInput inputs[] = {{"x", x}, {"indices", std::span<const Tensor>(indices)}, {"values", values}};
    const CallAttribute attributes[] = {{"accumulate", accumulate}};
    const FunctionCall call("index_put", "index_put", inputs, attributes);
    call.require_defined({"x", "values"});
    if (values.dtype() != x.dtype())
        throw TypeError(fmt::format("index_put: expected values of x's type, {}, got {}", name_of(x.dtype()),
                                    name_of(values.dtype())));
    const AdvancedIndex advanced("index_put", x, indices);
    const Tensor rows = advanced.move_index_axes(expand(values, advanced.result_shape()), true),
                 table = advanced.table(x);
    if (accumulate)
        return call.result(
            advanced.from_table(detail::scatter_add_rows("index_put", table, rows, advanced.row_indices), x));
    const Tensor last = detail::last_occurrences("index_put", advanced.row_indices, advanced.rows);
    const Tensor gathered = detail::gather_rows("index_put", rows, last, 0);
    return call.result(advanced.from_table(where(reshape(last >= 0, {-1, 1}), gathered, table), x));
}

}  // namespace declivity
