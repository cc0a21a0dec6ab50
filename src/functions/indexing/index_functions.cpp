// Indexing functions: each computes row indices (functions/support/rows.hpp) from its index tensors, by integer
// arithmetic.
#include <algorithm>
#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/broadcast.hpp"
#include "functions/support/flat_indices.hpp"
#include "functions/support/rows.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::FlatIndices;
using detail::gather_rows;
using detail::last_occurrences;
using detail::require_index;
using detail::scatter_add_rows;

namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// Checks that the index has as many axes as x, and none longer than x's but one.
void require_within(const char* function, const Tensor& index, std::string_view other, const Shape& shape, int along) {
    bool fits = index.rank() == shape.rank();
    for (int axis = 0; fits && axis < shape.rank(); ++axis) fits = axis == along || index.shape()[axis] <= shape[axis];
    if (!fits)
        throw ShapeError(fmt::format(
            "{}: expected an index of as many axes as {}, {}, and {} no longer, got {}", function, other, shape.str(),
            along < 0 ? "along all" : fmt::format("along others than {}", along), index.shape().str()));
}

void require_type(const char* function, std::string_view name, const Tensor& tensor, const Tensor& x) {
    if (tensor.dtype() != x.dtype())
        throw TypeError(fmt::format("{}: expected {} of x's type, {}, got {}", function, name, name_of(x.dtype()),
                                    name_of(tensor.dtype())));
    ops::require_same_device(function, x.device(), tensor.device());
}

/// The part of src that an index covers: along all axes, or all but one.
Tensor within(const Tensor& src, const Shape& shape, int except = -1) {
    Tensor part = src;
    for (int axis = 0; axis < shape.rank(); ++axis)
        if (axis != except && part.shape()[axis] != shape[axis]) part = slice(part, axis, 0, shape[axis]);
    return part;
}

Tensor column(const Tensor& x) { return reshape(x, {x.numel(), 1}); }

/// The table with row indices[i] replaced by source[i]: table (V, D), `source` (N, D).
Tensor replace_rows(const char* name, const Tensor& table, const Tensor& indices, const Tensor& source) {
    const Tensor last = last_occurrences(name, indices, table.size(0));
    return where(reshape(last >= 0, {-1, 1}), gather_rows(name, source, last, 0), table);
}

/// Checks shared by scatter and its variants.
void require_scattered(const char* name, const Tensor& x, int along, const Tensor& index, const Tensor& src) {
    require_index(name, index, x);
    require_type(name, "src", src, x);
    require_within(name, index, "x", x.shape(), along);
    require_within(name, index, "src", src.shape(), -1);
}

/// Returns whether an index has the sizes of x along all other axes, so that it holds indices along this one.
bool matches_other_axes(const Tensor& x, int along, const Tensor& index) {
    for (int axis = 0; axis < x.rank(); ++axis)
        if (axis != along && index.shape()[axis] != x.shape()[axis]) return false;
    return true;
}

}  // namespace

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index) {
    const FunctionCall call("gather", {{"x", x}, {"index", index}}, {{"axis", axis}});
    call.require_defined({"x", "index"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(reshape(gather(as_1d, axis, reshape(index, {index.numel()})), index.shape()));
    }
    const int along = normalize_axis("gather", axis, x.rank());
    require_index("gather", index, x);
    require_within("gather", index, "x", x.shape(), along);
    const Tensor source = FlatIndices::around(within(x, index.shape(), along), along);
    return call.result(
        reshape(detail::gather_along("gather", source, FlatIndices::around(index, along), kMissing), index.shape()));
}

Tensor take_along_axis(const Tensor& x, const Tensor& index, std::int64_t axis) {
    const FunctionCall call("take_along_axis", {{"x", x}, {"index", index}}, {{"axis", axis}});
    call.require_defined({"x", "index"});
    const int along = normalize_axis("take_along_axis", axis, x.rank());
    require_index("take_along_axis", index, x);
    if (index.rank() != x.rank())
        throw ShapeError(fmt::format("take_along_axis: expected an index of as many axes as x, {}, got {}",
                                     x.shape().str(), index.shape().str()));
    Shape x_batch = x.shape(), index_batch = index.shape();
    x_batch[along] = index_batch[along] = 1;
    const Shape batch = broadcast_shapes("take_along_axis", x_batch, index_batch);
    Shape x_shape = batch, index_shape = batch;
    x_shape[along] = x.shape()[along];
    index_shape[along] = index.shape()[along];
    const Tensor index_i64 = index.to(DType::i64),
                 wrapped = where(index_i64 < 0, index_i64 + x.shape()[along], index_i64);
    return call.result(gather(expand(x, x_shape), along, expand(wrapped, index_shape)));
}

Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src) {
    const FunctionCall call("scatter", {{"x", x}, {"index", index}, {"src", src}}, {{"axis", axis}});
    call.require_defined({"x", "index", "src"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(
            reshape(scatter(as_1d, axis, reshape(index, {index.numel()}), reshape(src, {src.numel()})), {}));
    }
    const int along = normalize_axis("scatter", axis, x.rank());
    require_scattered("scatter", x, along, index, src);
    const Tensor part = within(src, index.shape());
    // The gradient needs to identify the last of equal indices.
    if (matches_other_axes(x, along, index) && !any_requires_grad({x, src}))
        return call.result(
            reshape(detail::scatter_along("scatter", FlatIndices::around(x, along), FlatIndices::around(part, along),
                                          FlatIndices::around(index, along)),
                    x.shape()));
    return call.result(reshape(
        replace_rows("scatter", column(x), FlatIndices::along(x.shape(), along, index), column(part)), x.shape()));
}

Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value) {
    const FunctionCall call("scatter", {{"x", x}, {"index", index}}, {{"axis", axis}, {"value", value}});
    call.require_defined({"x", "index"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(reshape(scatter(as_1d, axis, reshape(index, {index.numel()}), value), {}));
    }
    const int along = normalize_axis("scatter", axis, x.rank());
    require_index("scatter", index, x);
    require_within("scatter", index, "x", x.shape(), along);
    const Tensor last = last_occurrences("scatter", FlatIndices::along(x.shape(), along, index), x.numel());
    return call.result(where(reshape(last >= 0, x.shape()), full({}, value, {x.dtype(), x.device()}), x));
}

Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src) {
    const FunctionCall call("scatter_add", {{"x", x}, {"index", index}, {"src", src}}, {{"axis", axis}});
    call.require_defined({"x", "index", "src"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(
            reshape(scatter_add(as_1d, axis, reshape(index, {index.numel()}), reshape(src, {src.numel()})), {}));
    }
    const int along = normalize_axis("scatter_add", axis, x.rank());
    require_scattered("scatter_add", x, along, index, src);
    const Tensor part = within(src, index.shape());
    const Tensor sums =
        matches_other_axes(x, along, index)
            ? detail::scatter_add_along("scatter_add", FlatIndices::around(x, along), FlatIndices::around(part, along),
                                        FlatIndices::around(index, along))
            : scatter_add_rows("scatter_add", column(x), column(part), FlatIndices::along(x.shape(), along, index));
    return call.result(reshape(sums, x.shape()));
}

Tensor scatter_reduce(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& src,
                      ScatterReduction reduction, bool include_self) {
    constexpr const char* kNames[] = {"sum", "prod", "mean", "amax", "amin"};
    const FunctionCall call(
        "scatter_reduce", {{"x", x}, {"index", index}, {"src", src}},
        {{"axis", axis}, {"reduction", kNames[static_cast<int>(reduction)]}, {"include_self", include_self}});
    call.require_defined({"x", "index", "src"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(reshape(scatter_reduce(as_1d, axis, reshape(index, {index.numel()}),
                                                  reshape(src, {src.numel()}), reduction, include_self),
                                   {}));
    }
    const int along = normalize_axis("scatter_reduce", axis, x.rank());
    require_scattered("scatter_reduce", x, along, index, src);
    if (is_16bit_float(x.dtype())) {
        const auto reduce = [&](const Tensor& upcast, const Tensor& upcast_src) {
            return scatter_reduce(upcast, axis, index, upcast_src, reduction, include_self);
        };
        return call.result(detail::in_f32(x.dtype(), reduce, x, src));
    }
    const Tensor flat_index = FlatIndices::along(x.shape(), along, index);
    const Tensor elements = column(within(src, index.shape())), self = column(x);
    const auto finish = [&](const Tensor& column) { return call.result(reshape(column, x.shape())); };
    const Tensor counts = scatter_add_rows("scatter_reduce", ones({elements.numel(), 1}, {DType::i64, x.device()}),
                                           flat_index, x.numel());
    const Tensor touched = counts > 0;
    const auto sums = [&](const Tensor& values) {
        return scatter_add_rows("scatter_reduce", values, flat_index, x.numel());
    };
    const auto gathered = [&](const Tensor& values) { return gather_rows("scatter_reduce", values, flat_index, 0); };
    if (reduction == ScatterReduction::sum)
        return finish(include_self ? self + sums(elements) : where(touched, sums(elements), self));
    if (reduction == ScatterReduction::mean) {
        const Tensor total = include_self ? self + sums(elements) : sums(elements);
        const Tensor divisor = maximum(counts + (include_self ? 1 : 0), 1).to(x.dtype());
        const Tensor mean = is_floating(x.dtype()) ? total / divisor : floor_divide(total, divisor);
        return finish(where(touched, mean, self));
    }
    if (reduction == ScatterReduction::prod) {
        // The k-th element of each row in the k-th product, so that gradients are right where there are zeros.
        const std::int64_t max_count = elements.numel() == 0 ? 0 : max(counts).item<std::int64_t>();
        Tensor product = include_self ? self : where(touched, 1, self), remaining = flat_index;
        const Tensor order = arange(0, elements.numel(), 1, {DType::i64, x.device()});
        for (std::int64_t k = 0; k < max_count; ++k) {
            const Tensor last = last_occurrences("scatter_reduce", remaining, x.numel());
            const Tensor factor =
                where(reshape(last >= 0, {-1, 1}), gather_rows("scatter_reduce", elements, last, 0), 1);
            product = product * factor;
            const Tensor used = reshape(gather_rows("scatter_reduce", reshape(last, {-1, 1}), remaining, -1), {-1});
            remaining = where(used == order, -1, remaining);
        }
        return finish(product);
    }
    const bool largest = reduction == ScatterReduction::amax;
    Tensor extreme;
    {
        const NoGrad no_grad;
        const Tensor reduced =
            detail::scatter_reduce_rows("scatter_reduce", largest ? ops::Fold::largest : ops::Fold::smallest,
                                        elements.detach(), flat_index, x.numel());
        extreme =
            include_self ? (largest ? maximum(reduced, self.detach()) : minimum(reduced, self.detach())) : reduced;
        extreme = where(touched, extreme, self.detach());
    }
    if (!any_requires_grad({x, src})) return finish(extreme);
    // The same value as a mean of all elements equal to it, through which the gradient flows.
    const Tensor is_extreme = elements == gathered(extreme);
    const Tensor self_counts = include_self ? self == extreme : !touched;
    const Tensor tie_count = sums(is_extreme.to(x.dtype())) + self_counts.to(x.dtype());
    const Tensor total = sums(where(is_extreme, elements, 0)) + where(self_counts, self, 0);
    // Its value is a rounded mean, so the difference to the exact one is added.
    const Tensor mean = total / maximum(tie_count.detach(), 1);
    return finish(mean + (extreme - mean.detach()));
}

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index) {
    const FunctionCall call("index_select", {{"x", x}, {"index", index}}, {{"axis", axis}});
    call.require_defined({"x", "index"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(reshape(index_select(as_1d, axis, reshape(index, {index.numel()})), {}));
    }
    const int along = normalize_axis("index_select", axis, x.rank());
    require_index("index_select", index, x);
    ops::require_rank("index_select", "the index", index.shape(), 1, "N");
    Shape shape = x.shape();
    shape[along] = index.numel();
    return call.result(reshape(
        gather_rows("index_select", FlatIndices::table(x, along), FlatIndices::rows(x.shape(), along, index), kMissing),
        shape));
}

namespace {

/// Code shared by index_add and index_copy: `source` as rows.
Tensor source_rows(const char* name, const Tensor& x, int along, const Tensor& index, const Tensor& source) {
    require_index(name, index, x);
    ops::require_rank(name, "the index", index.shape(), 1, "N");
    require_type(name, "source", source, x);
    Shape shape = x.shape();
    shape[along] = index.numel();
    ops::require_shape(name, "source", source.shape(), shape);
    return FlatIndices::table(source, along);
}

}  // namespace

Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source, Scalar alpha) {
    const FunctionCall call("index_add", {{"x", x}, {"index", index}, {"source", source}},
                            {{"axis", axis}, {"alpha", alpha}});
    call.require_defined({"x", "index", "source"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(reshape(
            index_add(as_1d, axis, reshape(index, {index.numel()}), reshape(source, {source.numel()}), alpha), {}));
    }
    const int along = normalize_axis("index_add", axis, x.rank());
    const Tensor rows = source_rows("index_add", x, along, index, source);
    const Tensor row_indices = FlatIndices::rows(x.shape(), along, index), table = FlatIndices::table(x, along);
    if (alpha.to_double() == 1)
        return call.result(reshape(scatter_add_rows("index_add", table, rows, row_indices), x.shape()));
    const auto scaled = [&](const Tensor& base, const Tensor& updates) {
        return base + scatter_add_rows("index_add", updates, row_indices, table.size(0)) * alpha;
    };
    return call.result(reshape(detail::in_f32(x.dtype(), scaled, table, rows), x.shape()));
}

Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source) {
    const FunctionCall call("index_copy", {{"x", x}, {"index", index}, {"source", source}}, {{"axis", axis}});
    call.require_defined({"x", "index", "source"});
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(
            reshape(index_copy(as_1d, axis, reshape(index, {index.numel()}), reshape(source, {source.numel()})), {}));
    }
    const int along = normalize_axis("index_copy", axis, x.rank());
    const Tensor rows = source_rows("index_copy", x, along, index, source);
    return call.result(reshape(
        replace_rows("index_copy", FlatIndices::table(x, along), FlatIndices::rows(x.shape(), along, index), rows),
        x.shape()));
}

Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, const TensorOrScalar& value) {
    const FunctionCall call("index_fill", {{"x", x}, {"index", index}, {"value", value.tensor()}},
                            {{"axis", axis}, {"value", value.scalar()}});
    call.require_defined({"x", "index"});
    if (!value.is_scalar()) {
        call.require_defined({"value"});
        ops::require_shape("index_fill", "the value", value.tensor().shape(), {});
    }
    if (x.rank() == 0) {
        const Tensor as_1d = reshape(x, {1});
        return call.result(reshape(index_fill(as_1d, axis, reshape(index, {index.numel()}), value), {}));
    }
    const int along = normalize_axis("index_fill", axis, x.rank());
    require_index("index_fill", index, x);
    ops::require_rank("index_fill", "the index", index.shape(), 1, "N");
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) shape.push_back(i == along ? x.shape()[i] : 1);
    const Tensor last = last_occurrences("index_fill", index, x.shape()[along]);
    const Tensor fill_value =
        value.is_scalar() ? full({}, value.scalar(), {x.dtype(), x.device()}) : value.tensor().to(x.dtype());
    return call.result(where(reshape(last >= 0, shape), fill_value, x));
}

Tensor take(const Tensor& x, const Tensor& index) {
    const FunctionCall call("take", {{"x", x}, {"index", index}});
    call.require_defined({"x", "index"});
    require_index("take", index, x);
    const Tensor flat_index = reshape(detail::wrap_negative(index.to(DType::i64), x.numel()), {-1});
    return call.result(reshape(gather_rows("take", column(x), flat_index, kMissing), index.shape()));
}

Tensor gather_nd(const Tensor& x, const Tensor& index) {
    const FunctionCall call("gather_nd", {{"x", x}, {"index", index}});
    call.require_defined({"x", "index"});
    require_index("gather_nd", index, x);
    const detail::NdIndices nd("gather_nd", x.shape(), index);
    const Tensor rows = gather_rows("gather_nd", reshape(x, {nd.rows, nd.row_size}), nd.row_indices, kMissing);
    return call.result(reshape(rows, nd.result_shape));
}

Tensor scatter_nd(const Tensor& index, const Tensor& updates, const Shape& shape) {
    const FunctionCall call("scatter_nd", {{"index", index}, {"updates", updates}}, {{"shape", shape}});
    call.require_defined({"index", "updates"});
    require_index("scatter_nd", index, updates);
    const detail::NdIndices nd("scatter_nd", shape, index);
    ops::require_shape("scatter_nd", "the updates", updates.shape(), nd.result_shape);
    const Tensor rows = reshape(updates, {nd.row_indices.numel(), nd.row_size});
    return call.result(reshape(scatter_add_rows("scatter_nd", rows, nd.row_indices, nd.rows), shape));
}

}  // namespace declivity
