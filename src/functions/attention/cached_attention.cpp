// Attention with a KV cache whose lengths are on the device.
#include <cmath>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/attention.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

constexpr const char* kName = "cached_attention";
constexpr std::int64_t kMaxHeadDim = 256;  // largest head dimension of the kernels

/// Gathers pages (P, H, page, D) to the keys of each sample, (B, H, n page, D).
Tensor gather_pages(const Tensor& pages, const Tensor& table) {
    const std::int64_t samples = table.size(0), pages_per_sample = table.size(1);
    const Tensor page_indices = clamp(flatten(table, 0), 0, pages.size(0) - 1);
    const Tensor selected = reshape(index_select(pages, 0, page_indices),
                                    {samples, pages_per_sample, pages.size(1), pages.size(2), pages.size(3)});
    return reshape(permute(selected, {0, 2, 1, 3, 4}),
                   {samples, pages.size(1), pages_per_sample * pages.size(2), pages.size(3)});
}

/// Inputs query, key, value, lengths and the page table, which may be undefined.
Tensor decomposed(const Tensor& query, Tensor key, Tensor value, const Tensor& lengths,
                  const CachedAttentionParameters& options) {
    if (options.block_table.defined()) {
        key = gather_pages(key, options.block_table);
        value = gather_pages(value, options.block_table);
    }
    const std::int64_t queries = query.size(2), keys = key.size(2);
    const TensorOptions index_options{DType::i64, query.device()};
    const Tensor length = reshape(clamp(lengths.to(DType::i64), 0, keys), {lengths.size(0), 1, 1});
    // Position of a query relative to that of each key.
    const Tensor position = arange(0, keys, 1, index_options);
    const Tensor distance = length - queries + reshape(arange(0, queries, 1, index_options), {queries, 1}) - position;
    Tensor visible = position < length;
    if (options.is_causal) visible = visible & (distance >= 0);
    if (options.window) visible = visible & (abs(distance) < *options.window);
    visible = broadcast_to(visible, {lengths.size(0), queries, keys});
    // Masked keys and values may be anything, even NaN.
    const Tensor used = unsqueeze(any(visible, {1}), -1);
    const auto masked = [&](const Tensor& x) { return where(unsqueeze(used, 1), x.to(query.dtype()), 0); };
    return scaled_dot_product_attention(
        query, masked(key), masked(value),
        {.attn_mask = unsqueeze(visible, 1), .scale = options.scale, .enable_gqa = true});
}

void check(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& lengths,
           const CachedAttentionParameters& options) {
    ops::require_real(kName, "query", query.dtype());
    ops::require_rank(kName, "query", query.shape(), 4, "B, heads, L, D");
    ops::require_rank(kName, "key", key.shape(), 4, "B, heads, S, D");
    ops::require_rank(kName, "value", value.shape(), 4, "B, heads, S, E");
    ops::require_alike(kName, "key", key.dtype(), key.device(), "value", value.dtype(), value.device());
    ops::require_same_device(kName, query.device(), key.device());
    if (key.dtype() != query.dtype() && !(is_16bit_float(key.dtype()) && compute_type(query.dtype()) == DType::f32))
        throw TypeError(
            fmt::format("{}: expected key and value of query's type, or f16 or bf16 with an f32 query, got {} and {}",
                        kName, name_of(key.dtype()), name_of(query.dtype())));
    const std::int64_t samples = query.size(0);
    ops::require_shape(kName, "value", value.shape(), {key.size(0), key.size(1), key.size(2), value.size(3)});
    if (key.size(3) != query.size(3))
        throw ShapeError(fmt::format("{}: expected key and query of the same size along the last axis, got {} and {}",
                                     kName, key.shape().str(), query.shape().str()));
    if (key.size(1) == 0 || query.size(1) % key.size(1) != 0)
        throw ShapeError(
            fmt::format("{}: expected numbers of heads of key and value that divide that of query, got {} and {}",
                        kName, key.size(1), query.size(1)));
    ops::require_shape(kName, "lengths", lengths.shape(), {samples});
    ops::require_same_device(kName, query.device(), lengths.device());
    if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64)
        throw TypeError(fmt::format("{}: expected lengths of i32 or i64, got {}", kName, name_of(lengths.dtype())));
    if (const Tensor& table = options.block_table; table.defined()) {
        ops::require_rank(kName, "block_table", table.shape(), 2, "B, pages of a sample");
        ops::require_shape(kName, "block_table", table.shape(), {samples, table.size(1)});
        ops::require_alike(kName, "lengths", lengths.dtype(), lengths.device(), "block_table", table.dtype(),
                           table.device());
        if (key.size(0) == 0) throw ShapeError(fmt::format("{}: expected at least one page, got none", kName));
    } else if (key.size(0) != samples) {
        throw ShapeError(fmt::format("{}: expected key and value for {} samples, got {}", kName, samples, key.size(0)));
    }
    if (options.window && *options.window < 1)
        throw ValueError(fmt::format("{}: expected a window of at least 1, got {}", kName, *options.window));
    if (options.scale && !std::isfinite(*options.scale))
        throw ValueError(fmt::format("{}: expected a finite scale, got {}", kName, *options.scale));
}

ops::View rows_of(const Tensor& x) {
    const ops::View view = x.view();
    return view.shape[3] <= 1 || view.strides[3] == 1 ? view : x.clone().view();
}

/// Attention computed by the kernels; f16 and bf16 queries are upcast to f32.
Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& lengths,
                       const CachedAttentionParameters& options) {
    const DType compute = compute_type(query.dtype());
    ops::CachedAttentionAttributes parameters{.is_causal = options.is_causal};
    parameters.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
    if (options.window) parameters.window = *options.window;
    const Tensor y(ops::cached_attention({rows_of(query.to(compute)), rows_of(key), rows_of(value),
                                          lengths.dense_view(), detail::dense_or_none(options.block_table)},
                                         parameters));
    return permute(y.to(query.dtype()), {0, 2, 1, 3});
}

}  // namespace

Tensor cached_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& lengths,
                        const CachedAttentionParameters& options) {
    const FunctionCall call(
        kName,
        {{"query", query}, {"key", key}, {"value", value}, {"lengths", lengths}, {"block_table", options.block_table}},
        {{"is_causal", options.is_causal},
         options.scale ? CallAttribute("scale", *options.scale) : CallAttribute("scale", "None"),
         options.window ? CallAttribute("window", *options.window) : CallAttribute("window", "None")});
    call.require_defined({"query", "key", "value", "lengths"});
    check(query, key, value, lengths, options);
    const bool small = query.size(3) <= kMaxHeadDim && value.size(3) <= kMaxHeadDim && query.size(3) > 0;
    // f64 accumulators would take twice the registers on SIMT devices.
    const bool is_f64_on_simt =
        ops::kernel_style_of(query.device()) == KernelStyle::simt && query.dtype() == DType::f64;
    if (detail::by_decomposition() || any_requires_grad({query, key, value}) || !small || is_f64_on_simt ||
        query.numel() == 0 || key.numel() == 0 || value.numel() == 0)
        return call.result(decomposed(query, key, value, lengths, options));
    return call.result(fused_attention(query, key, value, lengths, options));
}

}  // namespace declivity
