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

void require_whole(const char* name, const char* what, const Tensor& indices) {
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
void renormalise(const char* name, const Tensor& weight, const Tensor& numbers, double max_norm, double p) {
    if (weight.numel() == 0) return;
    const NoGrad no_grad;
    Tensor table = weight;
    const Tensor whole = detail::upcast(weight.detach());
    const Tensor used = detail::sum_rows(name, ones({numbers.numel(), 1}, {whole.dtype(), whole.device()}), numbers,
                                         weight.size(0)) > 0;
    const Tensor length = norm(whole, p, {1}, true);
    // PyTorch's 1e-7, which keeps the result below the norm.
    const Tensor factor = where(logical_and(used, length > max_norm), max_norm / (length + 1e-7), 1);
    table.copy_((whole * factor).to(weight.dtype()));
}

/// Count of each of the indices (N) among them: (N, 1).
Tensor frequencies(const char* name, const Tensor& numbers, const Tensor& like, std::int64_t size) {
    const Tensor one = ones({numbers.numel(), 1}, {compute_type(like.dtype()), like.device()});
    return detail::take_rows(name, detail::sum_rows(name, one, numbers, size), numbers, 1);
}

/// take_rows whose gradient omits the padding row, or divides that of each row by the number of its occurrences.
Tensor rows_of(const char* name, const Tensor& weight, const Tensor& numbers, std::optional<std::int64_t> padding,
               bool by_frequency) {
    if ((!padding && !by_frequency) || !any_requires_grad({weight}))
        return detail::take_rows(name, weight, numbers, kNaN);
    const Tensor rows = [&] {
        const NoGrad values_alone;
        return detail::take_rows(name, weight, numbers, kNaN);
    }();
    return attach_backward(
        name, {weight}, rows.value(),
        [name, numbers = Saved(numbers), padding, by_frequency, size = weight.size(0)](const GradientContext& context) {
            const Tensor all = numbers.get(name);
            const Tensor& given = context.gradient();
            Tensor g = given;
            if (by_frequency) g = (detail::upcast(given) / frequencies(name, all, given, size)).to(given.dtype());
            // Out-of-range indices are ignored.
            return std::vector{detail::sum_rows(name, g, padding ? where(all == *padding, -1, all) : all, size)};
        },
        RuleKind::differentiable);
}

/// Maximum of each column over the rows of a bag; the first of equal ones gets the gradient.
Tensor largest_of(const char* name, const Tensor& rows, const Tensor& bags, std::int64_t count) {
    const std::int64_t n = rows.size(0);
    if (n == 0) return sum(rows) + zeros({count, rows.size(1)}, {rows.dtype(), rows.device()});
    Tensor first, none;
    {
        const NoGrad places;
        const Tensor values = rows.detach(), most = detail::fold_rows(name, ops::Fold::largest, values, bags, count);
        const Tensor own = detail::take_rows(name, most, bags, kNaN);
        const Tensor row = unsqueeze(arange(0, n, 1, {DType::i64, rows.device()}), 1);
        // NaN is the largest, whichever row it is in.
        const Tensor wins = logical_or(values == own, logical_and(isnan(own), isnan(values)));
        const Tensor place = where(wins, row, n);
        first = detail::fold_rows(name, ops::Fold::smallest, place, bags, count);
        none = detail::sum_rows(name, ones({n, 1}, {DType::f32, rows.device()}), bags, count) == 0;
    }
    return where(none, 0, gather(rows, 0, where(none, 0, first)));
}

/// Bag of each index: (N), i64.
Tensor bags_of(const Tensor& indices, const Tensor& offsets, bool include_last_offset) {
    const TensorOptions whole{DType::i64, indices.device()};
    const Tensor place = arange(0, indices.numel(), 1, whole);
    if (indices.rank() == 2) return floor_divide(place, std::max<std::int64_t>(1, indices.size(1)));
    const Tensor starts = offsets.to(DType::i64);
    const Tensor bag = searchsorted(starts, place, true) - 1;
    if (!include_last_offset) return bag;
    // Indices behind the last offset belong to no bag.
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
    require_whole(name, "indices", indices);
    const auto padding = padding_of(name, weight, options.padding_idx);
    require_max_norm(name, options.max_norm, options.norm_type);
    Shape shape = indices.shape();
    shape.push_back(weight.size(1));
    const Tensor numbers = reshape(indices, {indices.numel()});
    if (options.max_norm) renormalise(name, weight, numbers, *options.max_norm, options.norm_type);
    return call.result(reshape(rows_of(name, weight, numbers, padding, options.scale_grad_by_freq), shape));
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
    require_whole(name, "indices", indices);
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
        require_whole(name, "offsets", offsets);
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
    const Tensor numbers = reshape(indices, {indices.numel()});
    if (options.max_norm) renormalise(name, weight, numbers, *options.max_norm, options.norm_type);
    Tensor bags = bags_of(indices, offsets, options.include_last_offset);
    if (padding) bags = where(numbers == *padding, -1, bags);
    Tensor rows = detail::upcast(rows_of(name, weight, numbers, padding, options.scale_grad_by_freq));
    if (options.mode == BagMode::max) return call.result(largest_of(name, rows, bags, count).to(weight.dtype()));
    if (per_sample_weights.defined()) rows = rows * reshape(detail::upcast(per_sample_weights), {numbers.numel(), 1});
    Tensor y = detail::sum_rows(name, rows, bags, count);
    if (options.mode == BagMode::mean) {
        const Tensor members =
            detail::sum_rows(name, ones({numbers.numel(), 1}, {rows.dtype(), rows.device()}), bags, count);
        y = y / maximum(members, 1);
    }
    return call.result(y.to(weight.dtype()));
}

}  // namespace declivity
