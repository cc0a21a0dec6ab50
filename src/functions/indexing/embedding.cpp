#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/rows.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void require_table(const char* name, const Tensor& weight) {
    ops::require_rank(name, "weight", weight.shape(), 2, "V, D");
    if (!is_floating(weight.dtype()))
        throw TypeError(
            fmt::format("{}: expected f32, f64, f16 or bf16 as weight, got {}", name, name_of(weight.dtype())));
}

void require_index_type(const char* name, const char* what, const Tensor& indices) {
    if (indices.dtype() != DType::i32 && indices.dtype() != DType::i64)
        throw TypeError(fmt::format("{}: expected {} of i32 or i64, got {} (convert with .to(DType::i64))", name, what,
                                    name_of(indices.dtype())));
}

/// Index of the row, counted from the start.
std::optional<std::int64_t> padding_of(const char* name, const Tensor& weight,
                                       const std::optional<std::int64_t>& padding_idx) {
    if (!padding_idx) return padding_idx;
    const std::int64_t size = weight.size(0);
    if (*padding_idx < -size || *padding_idx >= size)
        throw ValueError(fmt::format("{}: expected padding_idx within {} rows, got {}", name, size, *padding_idx));
    return *padding_idx < 0 ? *padding_idx + size : *padding_idx;
}

void require_max_norm(const char* name, const std::optional<double>& max_norm, double norm_type) {
    if (max_norm && !(*max_norm >= 0))
        throw ValueError(fmt::format("{}: expected a max_norm of at least 0, got {}", name, *max_norm));
    if (max_norm && !(norm_type > 0))
        throw ValueError(fmt::format("{}: expected a norm_type above 0, got {}", name, norm_type));
}

CallAttribute attribute(const char* name, const std::optional<double>& value) {
    return value ? CallAttribute(name, *value) : CallAttribute(name, "None");
}
CallAttribute attribute(const char* name, const std::optional<std::int64_t>& value) {
    return value ? CallAttribute(name, *value) : CallAttribute(name, "None");
}

/// Scales rows selected by the indices (N) whose norm exceeds `max_norm` down to it.
void renormalise(const char* name, const Tensor& weight, const Tensor& indices, double max_norm, double p) {
    if (weight.numel() == 0) return;
    const NoGrad no_grad;
    Tensor table = weight;
    const Tensor upcast_table = detail::upcast(weight.detach());
    const Tensor used =
        detail::scatter_add_rows(name, ones({indices.numel(), 1}, {upcast_table.dtype(), upcast_table.device()}),
                                 indices, weight.size(0)) > 0;
    const Tensor norms = norm(upcast_table, p, {1}, true);
    // PyTorch's 1e-7, which keeps the result below the norm.
    const Tensor factor = where(logical_and(used, norms > max_norm), max_norm / (norms + 1e-7), 1);
    table.copy_((upcast_table * factor).to(weight.dtype()));
}

/// Count of each of the indices (N) among them: (N, 1).
Tensor frequencies(const char* name, const Tensor& indices, const Tensor& like, std::int64_t size) {
    const Tensor ones_column = ones({indices.numel(), 1}, {compute_type(like.dtype()), like.device()});
    return detail::gather_rows(name, detail::scatter_add_rows(name, ones_column, indices, size), indices, 1);
}

/// gather_rows whose gradient omits the padding row, or divides that of each row by the number of its occurrences.
Tensor rows_of(const char* name, const Tensor& weight, const Tensor& indices, std::optional<std::int64_t> padding,
               bool by_frequency) {
    if ((!padding && !by_frequency) || !any_requires_grad({weight}))
        return detail::gather_rows(name, weight, indices, kNaN);
    const Tensor rows = [&] {
        const NoGrad no_grad;
        return detail::gather_rows(name, weight, indices, kNaN);
    }();
    return attach_backward(
        name, {weight}, rows.value(),
        [name, indices = Saved(indices), padding, by_frequency, size = weight.size(0)](const GradientContext& context) {
            const Tensor row_indices = indices.get(name);
            const Tensor& gradient = context.gradient();
            Tensor g = gradient;
            if (by_frequency)
                g = (detail::upcast(gradient) / frequencies(name, row_indices, gradient, size)).to(gradient.dtype());
            // Out-of-range indices are ignored.
            return std::vector{detail::scatter_add_rows(
                name, g, padding ? where(row_indices == *padding, -1, row_indices) : row_indices, size)};
        },
        RuleKind::differentiable);
}

/// Maximum of each column over the rows of a bag; the first of equal ones gets the gradient.
Tensor largest_of(const char* name, const Tensor& rows, const Tensor& bags, std::int64_t count) {
    const std::int64_t n = rows.size(0);
    if (n == 0) return sum(rows) + zeros({count, rows.size(1)}, {rows.dtype(), rows.device()});
    Tensor first, is_empty;
    {
        const NoGrad no_grad;
        const Tensor values = rows.detach(),
                     maxima = detail::scatter_reduce_rows(name, ops::Fold::largest, values, bags, count);
        const Tensor bag_maximum = detail::gather_rows(name, maxima, bags, kNaN);
        const Tensor row_index = unsqueeze(arange(0, n, 1, {DType::i64, rows.device()}), 1);
        // NaN is the largest, whichever row it is in.
        const Tensor is_maximum = logical_or(values == bag_maximum, logical_and(isnan(bag_maximum), isnan(values)));
        const Tensor candidates = where(is_maximum, row_index, n);
        first = detail::scatter_reduce_rows(name, ops::Fold::smallest, candidates, bags, count);
        is_empty = detail::scatter_add_rows(name, ones({n, 1}, {DType::f32, rows.device()}), bags, count) == 0;
    }
    return where(is_empty, 0, gather(rows, 0, where(is_empty, 0, first)));
}

/// Bag of each index: (N), i64.
Tensor bags_of(const Tensor& indices, const Tensor& offsets, bool include_last_offset) {
    const TensorOptions index_options{DType::i64, indices.device()};
    const Tensor position = arange(0, indices.numel(), 1, index_options);
    if (indices.rank() == 2) return floor_divide(position, std::max<std::int64_t>(1, indices.size(1)));
    const Tensor starts = offsets.to(DType::i64);
    const Tensor bag = searchsorted(starts, position, true) - 1;
    if (!include_last_offset) return bag;
    // Indices after the last offset belong to no bag.
    return where(bag >= offsets.numel() - 1, -1, bag);
}

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingParameters& options) {
    constexpr auto* name = "embedding";
    const FunctionCall call(name, {{"indices", indices}, {"weight", weight}},
                            {attribute("padding_idx", options.padding_idx),
                             attribute("max_norm", options.max_norm),
                             {"norm_type", options.norm_type},
                             {"scale_grad_by_freq", options.scale_grad_by_freq}});
    call.require_defined({"indices", "weight"});
    require_table(name, weight);
    require_index_type(name, "indices", indices);
    const auto padding = padding_of(name, weight, options.padding_idx);
    require_max_norm(name, options.max_norm, options.norm_type);
    Shape shape = indices.shape();
    shape.push_back(weight.size(1));
    const Tensor flat_indices = reshape(indices, {indices.numel()});
    if (options.max_norm) renormalise(name, weight, flat_indices, *options.max_norm, options.norm_type);
    return call.result(reshape(rows_of(name, weight, flat_indices, padding, options.scale_grad_by_freq), shape));
}

Tensor embedding_bag(const Tensor& indices, const Tensor& weight, const Tensor& offsets,
                     const Tensor& per_sample_weights, const EmbeddingBagParameters& options) {
    constexpr auto* name = "embedding_bag";
    const FunctionCall call(
        name,
        {{"indices", indices}, {"weight", weight}, {"offsets", offsets}, {"per_sample_weights", per_sample_weights}},
        {{"mode", options.mode},
         {"include_last_offset", options.include_last_offset},
         attribute("padding_idx", options.padding_idx),
         attribute("max_norm", options.max_norm),
         {"norm_type", options.norm_type},
         {"scale_grad_by_freq", options.scale_grad_by_freq}});
    call.require_defined({"indices", "weight"});
    require_table(name, weight);
    require_index_type(name, "indices", indices);
    ops::require_same_device(name, weight.device(), indices.device());
    const auto padding = padding_of(name, weight, options.padding_idx);
    require_max_norm(name, options.max_norm, options.norm_type);
    if (indices.rank() == 2 && offsets.defined())
        throw ValueError("embedding_bag: expected no offsets for indices (B, L), whose rows are bags");
    if (indices.rank() == 1 && !offsets.defined())
        throw ValueError("embedding_bag: expected offsets for indices (N), got an undefined tensor");
    if (indices.rank() != 1 && indices.rank() != 2)
        throw ShapeError(
            fmt::format("embedding_bag: expected indices of shape (N) or (B, L), got shape {}", indices.shape().str()));
    if (offsets.defined()) {
        ops::require_rank(name, "offsets", offsets.shape(), 1, "B");
        require_index_type(name, "offsets", offsets);
        ops::require_same_device(name, weight.device(), offsets.device());
        if (options.include_last_offset && offsets.numel() < 1)
            throw ShapeError("embedding_bag: expected at least one offset with include_last_offset, got none");
    }
    if (per_sample_weights.defined()) {
        if (options.mode != BagMode::sum)
            throw ValueError(fmt::format("embedding_bag: expected per_sample_weights only for mode sum, got mode {}",
                                         name_of(options.mode)));
        ops::require_shape(name, "per_sample_weights", per_sample_weights.shape(), indices.shape());
        ops::require_alike(name, "weight", weight.dtype(), weight.device(), "per_sample_weights",
                           per_sample_weights.dtype(), per_sample_weights.device());
    }
    if (options.scale_grad_by_freq && options.mode == BagMode::max)
        throw ValueError("embedding_bag: expected no scale_grad_by_freq for mode max");
    const std::int64_t count =
        offsets.defined() ? offsets.numel() - (options.include_last_offset ? 1 : 0) : indices.size(0);
    const Tensor flat_indices = reshape(indices, {indices.numel()});
    if (options.max_norm) renormalise(name, weight, flat_indices, *options.max_norm, options.norm_type);
    Tensor bags = bags_of(indices, offsets, options.include_last_offset);
    if (padding) bags = where(flat_indices == *padding, -1, bags);
    Tensor rows = detail::upcast(rows_of(name, weight, flat_indices, padding, options.scale_grad_by_freq));
    if (options.mode == BagMode::max) return call.result(largest_of(name, rows, bags, count).to(weight.dtype()));
    if (per_sample_weights.defined())
        rows = rows * reshape(detail::upcast(per_sample_weights), {flat_indices.numel(), 1});
    Tensor y = detail::scatter_add_rows(name, rows, bags, count);
    if (options.mode == BagMode::mean) {
        const Tensor bag_sizes =
            detail::scatter_add_rows(name, ones({flat_indices.numel(), 1}, {rows.dtype(), rows.device()}), bags, count);
        y = y / maximum(bag_sizes, 1);
    }
    return call.result(y.to(weight.dtype()));
}

}  // namespace declivity
