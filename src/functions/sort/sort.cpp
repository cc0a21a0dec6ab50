// Sorting and order statistics, by topk, which sorts rows if k is their length, and by scans.
#include <algorithm>
#include <cmath>
#include <limits>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/search.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/axes.hpp"
#include "functions/support/equals.hpp"
#include "functions/support/rows.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

Sorted sorted(const Tensor& x, int along, bool descending) {
    if (x.rank() == 0) return {x, zeros({}, {DType::i64, x.device()})};
    const TopK result = topk(x, x.shape()[along], along, descending);
    return {result.values, result.indices};
}

/// Element at one index along an axis.
Sorted select_at(const Sorted& elements, int along, std::int64_t position, bool keep_axis) {
    if (elements.values.rank() == 0) return elements;
    const auto pick = [&](const Tensor& x) {
        return keep_axis ? slice(x, along, position, position + 1) : select(x, along, position);
    };
    return {pick(elements.values), pick(elements.indices)};
}

std::int64_t size_along(const char* name, const Tensor& x, int along) {
    const std::int64_t n = x.rank() == 0 ? 1 : x.shape()[along];
    if (n == 0)
        throw ShapeError(fmt::format("{}: expected elements along axis {}, got {}", name, along, x.shape().str()));
    return n;
}

/// Replaces the result if there is a NaN along the axis by the first NaN and its index.
Sorted with_nan(const Tensor& x, int along, bool keep_axis, Sorted result) {
    if (!is_floating(x.dtype()) || x.rank() == 0) return result;
    const Tensor nan = isnan(x.detach()), any_nan = any(nan, {along}, keep_axis);
    result.indices = where(any_nan, argmax(nan.to(DType::u8), along, keep_axis), result.indices);
    if (any_requires_grad({x})) {  // it receives the gradient
        const Tensor nan_index = keep_axis ? result.indices : unsqueeze(result.indices, along);
        const Tensor first = gather(x, along, nan_index);
        result.values = where(any_nan, keep_axis ? first : squeeze(first, {along}), result.values);
    } else {
        result.values =
            where(any_nan, full({}, std::numeric_limits<double>::quiet_NaN(), {x.dtype(), x.device()}), result.values);
    }
    return result;
}

}  // namespace

Sorted sort(const Tensor& x, std::int64_t axis, bool descending) {
    const FunctionCall call("sort", {{"x", x}}, {{"axis", axis}, {"descending", descending}});
    call.require_defined({"x"});
    Sorted result = sorted(x, detail::normalize_axis_of("sort", x, axis), descending);
    call.results({result.values, result.indices});
    return result;
}

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) {
    const FunctionCall call("argsort", {{"x", x}}, {{"axis", axis}, {"descending", descending}});
    call.require_defined({"x"});
    return call.result(sorted(x.detach(), detail::normalize_axis_of("argsort", x, axis), descending).indices);
}

Sorted kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis, bool keep_axis) {
    const FunctionCall call("kthvalue", {{"x", x}}, {{"k", k}, {"axis", axis}, {"keep_axis", keep_axis}});
    call.require_defined({"x"});
    const int along = detail::normalize_axis_of("kthvalue", x, axis);
    const std::int64_t n = size_along("kthvalue", x, along);
    if (k < 1 || k > n)
        throw ValueError(
            fmt::format("kthvalue: expected a k from 1 to {}, the elements of axis {}, got {}", n, along, k));
    Sorted result = select_at(sorted(x, along, false), along, k - 1, keep_axis);
    call.results({result.values, result.indices});
    return result;
}

Sorted median(const Tensor& x, std::int64_t axis, bool keep_axis) {
    const FunctionCall call("median", {{"x", x}}, {{"axis", axis}, {"keep_axis", keep_axis}});
    call.require_defined({"x"});
    const int along = detail::normalize_axis_of("median", x, axis);
    const std::int64_t n = size_along("median", x, along);
    Sorted result = with_nan(x, along, keep_axis, select_at(sorted(x, along, false), along, (n - 1) / 2, keep_axis));
    call.results({result.values, result.indices});
    return result;
}

Tensor median(const Tensor& x) {
    const FunctionCall call("median", {{"x", x}});
    call.require_defined({"x"});
    if (x.numel() == 0 && is_floating(x.dtype()))
        return call.result(full({}, std::numeric_limits<double>::quiet_NaN(), {x.dtype(), x.device()}));
    const Tensor middle = median(reshape(x, {x.numel()}).detach(), 0).values;
    return call.result(detail::shared_by_equals("median", x, middle));
}

Tensor quantile(const Tensor& x, double q, std::int64_t axis, bool keep_axis, std::string_view interpolation) {
    const FunctionCall call("quantile", {{"x", x}},
                            {{"q", q}, {"axis", axis}, {"keep_axis", keep_axis}, {"interpolation", interpolation}});
    call.require_defined({"x"});
    ops::require_real("quantile", "x", x.dtype());
    const int along = detail::normalize_axis_of("quantile", x, axis);
    if (!(q >= 0 && q <= 1)) throw ValueError(fmt::format("quantile: expected q in [0, 1], got {}", q));
    const std::int64_t n = size_along("quantile", x, along);
    const double position = q * static_cast<double>(n - 1);
    const auto lower = static_cast<std::int64_t>(std::floor(position)), higher = std::min(lower + 1, n - 1);
    double weight = position - static_cast<double>(lower);
    if (interpolation == "lower") weight = 0;
    else if (interpolation == "higher") weight = weight > 0 ? 1 : 0;
    else if (interpolation == "nearest") weight = std::nearbyint(position) - static_cast<double>(lower);
    else if (interpolation == "midpoint") weight = weight > 0 ? 0.5 : 0;
    else if (interpolation != "linear")
        throw ValueError(
            fmt::format("quantile: expected an interpolation of linear, lower, higher, nearest or midpoint, got \"{}\"",
                        interpolation));
    const Sorted ordered = sorted(x, along, false);
    const Tensor a = select_at(ordered, along, lower, keep_axis).values,
                 b = select_at(ordered, along, higher, keep_axis).values;
    const Tensor interpolated = weight == 0 ? a : weight == 1 ? b : lerp(a, b, weight);
    return call.result(
        with_nan(x, along, keep_axis,
                 {interpolated,
                  ordered.indices.rank() == 0 ? ordered.indices : select_at(ordered, along, 0, keep_axis).indices})
            .values);
}

Tensor quantile(const Tensor& x, const std::vector<double>& q, std::int64_t axis, bool keep_axis,
                std::string_view interpolation) {
    const FunctionCall call("quantile", {{"x", x}},
                            {{"q", std::span<const double>(q)},
                             {"axis", axis},
                             {"keep_axis", keep_axis},
                             {"interpolation", interpolation}});
    call.require_defined({"x"});
    if (q.empty()) throw ValueError("quantile: expected at least one q, got none");
    std::vector<Tensor> quantiles;
    for (const double value : q) quantiles.push_back(quantile(x, value, axis, keep_axis, interpolation));
    return call.result(stack(quantiles));
}

Sorted mode(const Tensor& x, std::int64_t axis, bool keep_axis) {
    const FunctionCall call("mode", {{"x", x}}, {{"axis", axis}, {"keep_axis", keep_axis}});
    call.require_defined({"x"});
    const int along = detail::normalize_axis_of("mode", x, axis);
    const std::int64_t n = size_along("mode", x, along);
    if (x.rank() == 0) {
        const Sorted result{x, zeros({}, {DType::i64, x.device()})};
        call.results({result.values, result.indices});
        return result;
    }
    // Length of the run of equal elements up to each, in sorted order; the first maximum ends the longest run.
    const Sorted ordered = sorted(x, along, false);
    const Tensor values = ordered.values.detach();
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) shape.push_back(i == along ? n : 1);
    const Tensor positions = expand(reshape(arange(0, n, 1, {DType::i64, x.device()}), shape), x.shape());
    const Tensor starts = concat(
        {slice(positions, along, 0, 1) == 0, slice(values, along, 1, n) != slice(values, along, 0, n - 1)}, along);
    const Tensor run = positions - cummax(where(starts, positions, 0), along).values;
    const Tensor end = argmax(run, along, true);
    Sorted result{gather(ordered.values, along, end), gather(ordered.indices, along, end)};
    if (!keep_axis) result = {squeeze(result.values, {along}), squeeze(result.indices, {along})};
    call.results({result.values, result.indices});
    return result;
}

namespace {

/// Unique rows (n, m) if equal ones are adjacent. @param order original indices; undefined: already in order
Unique group_rows(const char* name, const Tensor& rows, const Tensor& order) {
    const std::int64_t n = rows.size(0), m = rows.size(1);
    const TensorOptions index_options{DType::i64, rows.device()};
    if (n == 0) return {rows, zeros({0}, index_options), zeros({0}, index_options)};
    const Tensor differs = m == 1 ? reshape(slice(rows, 0, 1, n) != slice(rows, 0, 0, n - 1), {n - 1})
                                  : any(slice(rows, 0, 1, n) != slice(rows, 0, 0, n - 1), {1});
    const Tensor starts = concat({full({1}, 1, {DType::boolean, rows.device()}), differs}, 0);
    const Tensor group_index = cumsum(starts, 0) - 1;
    const std::int64_t count = select(group_index, 0, -1).item<std::int64_t>() + 1;
    const Tensor last = detail::last_occurrences(name, group_index, count);
    return {detail::gather_rows(name, rows, last, 0),
            order.defined() ? scatter(zeros({n}, index_options), 0, order, group_index) : group_index,
            reshape(detail::scatter_add_rows(name, ones({n, 1}, index_options), group_index, count), {count})};
}

/// Unique elements of x, in one row.
Unique unique_elements(const FunctionCall& call, const char* name, const Tensor& x, bool sorts) {
    const NoGrad no_grad;
    const std::int64_t n = x.numel();
    const Tensor row = reshape(x.detach(), {n});
    const Sorted ordered = sorts && n > 0 ? sorted(row, 0, false) : Sorted{row, {}};
    Unique result = group_rows(name, reshape(ordered.values, {n, 1}), ordered.indices);
    result.values = reshape(result.values, {result.values.size(0)});
    result.inverse = reshape(result.inverse, x.shape());
    call.results({result.values, result.inverse, result.counts});
    return result;
}

/// Unique slices of x along an axis.
Unique unique_slices(const FunctionCall& call, const char* name, const Tensor& x, std::int64_t axis, bool sorts) {
    const NoGrad no_grad;
    const int along = normalize_axis(name, axis, x.rank());
    const Tensor moved = movedim(x.detach(), along, 0);
    const std::int64_t n = moved.size(0), m = n == 0 ? 0 : moved.numel() / n;
    Tensor rows = reshape(moved, {n, m}), order;
    if (sorts && n > 0) {
        // Sorted by the last element first: the sorts are stable.
        order = arange(0, n, 1, {DType::i64, x.device()});
        for (std::int64_t i = m - 1; i >= 0; --i) {
            const Tensor column = gather(select(rows, 1, i), 0, order);
            order = gather(order, 0, sorted(column, 0, false).indices);
        }
        rows = index_select(rows, 0, order);
    }
    Unique result = group_rows(name, rows, order);
    Shape shape = moved.shape();
    shape[0] = result.values.size(0);
    result.values = movedim(reshape(result.values, shape), 0, along);
    call.results({result.values, result.inverse, result.counts});
    return result;
}

}  // namespace

Unique unique(const Tensor& x) {
    const FunctionCall call("unique", {{"x", x}});
    call.require_defined({"x"});
    return unique_elements(call, "unique", x, true);
}

Unique unique(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("unique", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    return unique_slices(call, "unique", x, axis, true);
}

Unique unique_consecutive(const Tensor& x) {
    const FunctionCall call("unique_consecutive", {{"x", x}});
    call.require_defined({"x"});
    return unique_elements(call, "unique_consecutive", x, false);
}

Unique unique_consecutive(const Tensor& x, std::int64_t axis) {
    const FunctionCall call("unique_consecutive", {{"x", x}}, {{"axis", axis}});
    call.require_defined({"x"});
    return unique_slices(call, "unique_consecutive", x, axis, false);
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
    const FunctionCall call("searchsorted", {{"sorted", sorted}, {"values", values}}, {{"right", right}});
    call.require_defined({"sorted", "values"});
    const DType type = result_type(sorted, values);
    const DType compute = is_16bit_float(type) ? DType::f32 : type;
    if (sorted.rank() == 0) throw ShapeError("searchsorted: expected sorted rows, got a tensor without axes");
    const std::int64_t n = sorted.shape()[-1];
    if (sorted.rank() > 1) {
        Shape expected = values.shape();
        if (values.rank() == sorted.rank()) expected[-1] = n;
        ops::require_shape("searchsorted", "the sorted rows", sorted.shape(), expected);
    }
    std::int64_t rows = 1;
    for (int axis = 0; axis + 1 < sorted.rank(); ++axis) rows *= sorted.size(axis);
    const std::int64_t values_per_row = rows == 0 ? 0 : values.numel() / rows;
    const Tensor sorted_rows = reshape(sorted.detach().to(compute), {rows, n}),
                 value_rows = reshape(values.detach().to(compute), {rows, values_per_row});
    const ops::View out = ops::View::make(values.device(), DType::i64, {rows, values_per_row});
    ops::search("searchsorted", sorted_rows.dense_view(), value_rows.dense_view(), right, out);
    return call.result(reshape(Tensor(out), values.shape()));
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
    const FunctionCall call("bucketize", {{"x", x}, {"boundaries", boundaries}}, {{"right", right}});
    call.require_defined({"x", "boundaries"});
    ops::require_rank("bucketize", "the boundaries", boundaries.shape(), 1, "n");
    return call.result(searchsorted(boundaries, x, right));
}

namespace {

struct Bounds {
    double low, high;
};

/// Range of the bins: as given, or that of x, widened by `margin` if it is a single number.
Bounds bounds_of(const char* name, const Tensor& flat, Bounds requested, double margin) {
    auto [low, high] = requested;
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high))
        throw ValueError(fmt::format("{}: expected a finite range with low <= high, got {} and {}", name, low, high));
    if (low == high && low == 0 && flat.numel() > 0) {
        const auto host_value = [](const Tensor& tensor) {
            return tensor.dtype() == DType::f64 ? tensor.item<double>() : static_cast<double>(tensor.item<float>());
        };
        low = host_value(min(flat));
        high = host_value(max(flat));
        if (!std::isfinite(low) || !std::isfinite(high))
            throw ValueError(
                fmt::format("{}: expected finite elements if no range is given, got {} to {}", name, low, high));
    }
    if (flat.numel() == 0 && low == high) return {low, low + 1};
    if (low == high) low -= margin, high += margin;
    return {low, high};
}

Histogram count_into_bins(const Tensor& flat, const Tensor& edges, const HistogramOptions& options) {
    const std::int64_t bins = edges.numel() - 1;
    const Tensor inside = (flat >= select(edges, 0, 0)) & (flat <= select(edges, 0, bins));
    const Tensor bin = minimum(searchsorted(edges, flat, true) - 1, bins - 1);
    const Tensor weight = options.weight.defined()
                              ? detail::upcast(reshape(options.weight.detach(), {flat.numel(), 1}))
                              : ones({flat.numel(), 1}, {compute_type(flat.dtype()), flat.device()});
    const Tensor upcast_edges = detail::upcast(edges);
    Tensor counts = reshape(detail::scatter_add_rows("histogram", weight, where(inside, bin, -1), bins), {bins});
    if (options.density)
        counts = counts / sum(counts) / (slice(upcast_edges, 0, 1, bins + 1) - slice(upcast_edges, 0, 0, bins));
    return {counts.to(flat.dtype()), edges};
}

void require_histogram(const FunctionCall& call, const Tensor& x, const Tensor& weight) {
    call.require_defined({"x"});
    if (x.dtype() != DType::f32 && x.dtype() != DType::f64)
        throw TypeError(fmt::format("histogram: expected f32 or f64 as x, got {} (convert with .to(DType::f32))",
                                    name_of(x.dtype())));
    if (!weight.defined()) return;
    ops::require_shape("histogram", "weight", weight.shape(), x.shape());
    if (weight.dtype() != x.dtype())
        throw TypeError(fmt::format("histogram: expected weight of x's type, {}, got {}", name_of(x.dtype()),
                                    name_of(weight.dtype())));
}

}  // namespace

Tensor histc(const Tensor& x, std::int64_t bins, double low, double high) {
    const FunctionCall call("histc", {{"x", x}}, {{"bins", bins}, {"low", low}, {"high", high}});
    call.require_defined({"x"});
    ops::require_real("histc", "x", x.dtype());
    if (bins < 1) throw ValueError(fmt::format("histc: expected at least 1 bin, got {}", bins));
    const NoGrad no_grad;
    const Tensor flat = reshape(x.detach().to(compute_type(x.dtype())), {x.numel()});
    const Bounds range = bounds_of("histc", flat, {low, high}, 1);
    const Tensor inside = (flat >= range.low) & (flat <= range.high);
    const double bins_per_unit = static_cast<double>(bins) / (range.high - range.low);
    const Tensor bin = minimum((flat - range.low) * bins_per_unit, bins - 1).to(DType::i64);
    const Tensor counts = detail::scatter_add_rows("histc", ones({flat.numel(), 1}, {flat.dtype(), x.device()}),
                                                   where(inside, bin, -1), bins);
    return call.result(reshape(counts, {bins}).to(x.dtype()));
}

Histogram histogram(const Tensor& x, std::int64_t bins, const HistogramOptions& options) {
    const FunctionCall call("histogram", {{"x", x}, {"weight", options.weight}},
                            {{"bins", bins}, {"low", options.low}, {"high", options.high}});
    require_histogram(call, x, options.weight);
    if (bins < 1) throw ValueError(fmt::format("histogram: expected at least 1 bin, got {}", bins));
    const NoGrad no_grad;
    const Tensor flat = reshape(x.detach(), {x.numel()});
    const Bounds range = bounds_of("histogram", flat, {options.low, options.high}, 0.5);
    // From both ends, so that both are exact.
    const double step = (range.high - range.low) / static_cast<double>(bins);
    const Tensor index = arange(0, bins + 1, 1, {compute_type(x.dtype()), x.device()});
    const Tensor compute_edges = where(index < static_cast<double>(bins + 1) / 2, range.low + index * step,
                                       range.high - (static_cast<double>(bins) - index) * step);
    const Histogram result = count_into_bins(flat, compute_edges.to(x.dtype()), options);
    call.results({result.counts, result.edges});
    return result;
}

Histogram histogram(const Tensor& x, const Tensor& edges, const HistogramOptions& options) {
    const FunctionCall call("histogram", {{"x", x}, {"edges", edges}, {"weight", options.weight}}, {});
    require_histogram(call, x, options.weight);
    call.require_defined({"x", "edges"});
    if (edges.rank() != 1 || edges.numel() < 2 || edges.dtype() != x.dtype())
        throw ShapeError(fmt::format("histogram: expected at least 2 edges (bins + 1) of x's type, {}, got {} of {}",
                                     name_of(x.dtype()), edges.shape().str(), name_of(edges.dtype())));
    const NoGrad no_grad;
    const Histogram result = count_into_bins(reshape(x.detach(), {x.numel()}), edges.detach(), options);
    call.results({result.counts, result.edges});
    return result;
}

}  // namespace declivity
