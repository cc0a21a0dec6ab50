#include <declivity/nn/attention.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

constexpr double kMaskedScore = -std::numeric_limits<double>::infinity();

/// Converts a bool mask to an additive one.
Tensor as_additive_mask(const Tensor& mask, DType dtype) {
    if (mask.dtype() != DType::boolean) return mask.to(dtype);
    return where(mask, full({}, kMaskedScore, {dtype, mask.device()}), 0);
}

/// (N, L, heads E) as (N, heads, L, E).
Tensor split_heads(const Tensor& x, std::int64_t heads) {
    return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : embed_dim_(embed_dim),
      num_heads_(num_heads),
      dropout_(options.dropout),
      batch_first_(options.batch_first),
      out_proj_(add("out_proj", [&] {
          if (embed_dim < 1 || num_heads < 1 || embed_dim % num_heads != 0)
              throw ValueError(fmt::format(
                  "MultiheadAttention: expected num_heads of at least 1 that divide embed_dim, got {} and {}",
                  num_heads, embed_dim));
          return Linear(embed_dim, embed_dim, {options.bias, options.dtype, options.device});
      }())) {
    if (!(dropout_ >= 0 && dropout_ <= 1))
        throw ValueError(fmt::format("MultiheadAttention: expected dropout in [0, 1], got {}", dropout_));
    const TensorOptions tensor_options{options.dtype, options.device};
    const auto initialised = [&](std::int64_t rows, std::int64_t columns) {
        if (columns < 1)
            throw ValueError(fmt::format("MultiheadAttention: expected kdim and vdim of at least 1, got {}", columns));
        return xavier_uniform_(zeros({rows, columns}, tensor_options));
    };
    const std::int64_t kdim = options.kdim.value_or(embed_dim), vdim = options.vdim.value_or(embed_dim);
    if (kdim == embed_dim && vdim == embed_dim) {
        in_proj_weight_ = parameter("in_proj_weight", initialised(3 * embed_dim, embed_dim));
    } else {
        q_proj_weight_ = parameter("q_proj_weight", initialised(embed_dim, embed_dim));
        k_proj_weight_ = parameter("k_proj_weight", initialised(embed_dim, kdim));
        v_proj_weight_ = parameter("v_proj_weight", initialised(embed_dim, vdim));
    }
    in_proj_bias_ = parameter("in_proj_bias", options.bias ? zeros({3 * embed_dim}, tensor_options) : Tensor());
    const NoGrad no_grad;
    if (options.bias) out_proj_.bias().fill_(0);
}

MultiheadAttention::Heads MultiheadAttention::heads_of(const Tensor& query, const Tensor& key, const Tensor& value,
                                                       bool with_values) const {
    const Tensor weight = in_proj_weight_, bias = in_proj_bias_;
    if (weight.defined() && !key.defined() && !value.defined()) {
        // One product; the heads are views of its result.
        const Tensor projections = reshape(linear(query, weight, bias),
                                           {query.size(0), query.size(1), 3, num_heads_, embed_dim_ / num_heads_});
        const auto part = [&](std::int64_t i) { return permute(select(projections, 2, i), {0, 2, 1, 3}); };
        return {part(0), part(1), part(2)};
    }
    const Tensor& keys = key.defined() ? key : query;
    const Tensor& values = value.defined() ? value : keys;
    const auto projected = [&](const Tensor& x, std::int64_t i, const Tensor& separate_weight) {
        const std::int64_t first = i * embed_dim_, last = first + embed_dim_;
        return split_heads(linear(x, weight.defined() ? slice(weight, 0, first, last) : separate_weight,
                                  bias.defined() ? slice(bias, 0, first, last) : Tensor()),
                           num_heads_);
    };
    return {projected(query, 0, q_proj_weight_), projected(keys, 1, k_proj_weight_),
            with_values ? projected(values, 2, v_proj_weight_) : Tensor()};
}

Tensor MultiheadAttention::mask_of(const AttentionMasks& masks, const Tensor& query, std::int64_t keys) const {
    const std::int64_t batch = query.size(0), queries = query.size(1);
    const DType dtype = query.dtype();
    Tensor mask = masks.attn_mask, padding = masks.key_padding_mask;
    // An integer mask would be added to the scores, where 1 masks nothing.
    for (const auto& [what, operand] : {std::pair("attn_mask", mask), std::pair("key_padding_mask", padding)})
        if (operand.defined() && operand.dtype() != DType::boolean && !is_floating(operand.dtype()))
            throw TypeError(
                fmt::format("MultiheadAttention: expected {} of bool, or an additive mask of a floating type, got {}",
                            what, name_of(operand.dtype())));
    if (mask.defined()) {
        if (mask.shape() != Shape{queries, keys} && mask.shape() != Shape{batch * num_heads_, queries, keys})
            throw ShapeError(fmt::format("MultiheadAttention: expected attn_mask {} or {}, got {}",
                                         Shape{queries, keys}.str(), Shape{batch * num_heads_, queries, keys}.str(),
                                         mask.shape().str()));
        if (mask.rank() == 3) mask = reshape(mask, {batch, num_heads_, queries, keys});
    }
    if (padding.defined()) {
        if (padding.rank() == 1 && batch == 1) padding = unsqueeze(padding, 0);
        if (padding.shape() != Shape{batch, keys})
            throw ShapeError(fmt::format("MultiheadAttention: expected key_padding_mask {}, got {}",
                                         Shape{batch, keys}.str(), padding.shape().str()));
        padding = reshape(padding, {batch, 1, 1, keys});
    }
    const auto is_bool = [](const Tensor& tensor) { return !tensor.defined() || tensor.dtype() == DType::boolean; };
    if (is_bool(mask) && is_bool(padding)) {
        if (mask.defined() && padding.defined()) return logical_not(mask | padding);
        return mask.defined() ? logical_not(mask) : padding.defined() ? logical_not(padding) : Tensor();
    }
    if (mask.defined() && padding.defined()) return as_additive_mask(mask, dtype) + as_additive_mask(padding, dtype);
    return as_additive_mask(mask.defined() ? mask : padding, dtype);
}

Tensor MultiheadAttention::forward(Tensor query, Tensor key, Tensor value, AttentionMasks masks) {
    if (query.rank() != 2 && query.rank() != 3)
        throw ShapeError(fmt::format("MultiheadAttention: expected query ({}) or (L, E), got {}",
                                     batch_first_ ? "N, L, E" : "L, N, E", query.shape().str()));
    if (query.size(-1) != embed_dim_)
        throw ShapeError(
            fmt::format("MultiheadAttention: expected query of embed_dim {}, got {}", embed_dim_, query.shape().str()));
    const bool unbatched = query.rank() == 2;
    const auto batched = [&](const Tensor& x) {
        if (!x.defined()) return x;
        if (x.rank() != query.rank())
            throw ShapeError(fmt::format(
                "MultiheadAttention: expected query, key and value with the same number of axes, got {} and {}",
                query.shape().str(), x.shape().str()));
        return unbatched ? unsqueeze(x, 0) : batch_first_ ? x : transpose(x, 0, 1);
    };
    const Tensor x = batched(query), keys = batched(key), values = batched(value);
    if (keys.defined() && keys.size(0) != x.size(0))
        throw ShapeError(fmt::format("MultiheadAttention: expected query and key of the same batch size, got {} and {}",
                                     query.shape().str(), key.shape().str()));
    const Heads heads = heads_of(x, keys, values, true);
    const Tensor y = scaled_dot_product_attention(heads.query, heads.key, heads.value,
                                                  {.attn_mask = mask_of(masks, x, heads.key.size(2)),
                                                   .dropout_p = training() ? dropout_ : 0,
                                                   .is_causal = masks.is_causal});
    const Tensor out = out_proj_(reshape(permute(y, {0, 2, 1, 3}), {x.size(0), x.size(1), embed_dim_}));
    return unbatched ? squeeze(out, {0}) : batch_first_ ? out : transpose(out, 0, 1);
}

Tensor MultiheadAttention::weights(const Tensor& query, const Tensor& key, const AttentionMasks& masks) const {
    const bool unbatched = query.rank() == 2;
    const auto batched = [&](const Tensor& x) {
        return !x.defined() ? x : unbatched ? unsqueeze(x, 0) : batch_first_ ? x : transpose(x, 0, 1);
    };
    const Tensor x = batched(query);
    const Heads heads = heads_of(x, batched(key), {}, false);
    const std::int64_t queries = heads.query.size(2), keys = heads.key.size(2);
    const Tensor mask = mask_of(masks, x, keys);
    Tensor scores = matmul(heads.query, transpose(heads.key, -1, -2)) *
                    (1 / std::sqrt(static_cast<double>(embed_dim_ / num_heads_)));
    if (mask.defined()) scores = mask.dtype() == DType::boolean ? where(mask, scores, kMaskedScore) : scores + mask;
    if (masks.is_causal) {
        const TensorOptions index_options{DType::i64, x.device()};
        scores = where(reshape(arange(0, keys, 1, index_options), {1, keys}) <=
                           reshape(arange(0, queries, 1, index_options), {queries, 1}),
                       scores, kMaskedScore);
    }
    const Tensor weights_of_heads = softmax(scores, -1);
    return unbatched ? squeeze(weights_of_heads, {0}) : weights_of_heads;
}

std::int64_t MultiheadAttention::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    // Multiply-adds of the projections, for a query of `rows`, and of the attention without the effect of masks.
    const std::int64_t rows = inputs.at(0).numel() / inputs.at(0).size(-1);
    return rows * 3 * embed_dim_ * embed_dim_ + 2 * rows * inputs.at(0).size(batch_first_ ? -2 : 0) * embed_dim_;
}

}  // namespace declivity::nn
