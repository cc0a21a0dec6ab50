#include <declivity/nn/transformer.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

MultiheadAttention make_attention(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options) {
    return MultiheadAttention(d_model, nhead,
                              {.dropout = options.dropout,
                               .bias = options.bias,
                               .batch_first = options.batch_first,
                               .dtype = options.dtype,
                               .device = options.device});
}

Linear make_linear(std::int64_t in, std::int64_t out, const TransformerLayerOptions& options) {
    return Linear(in, out, {options.bias, options.dtype, options.device});
}

LayerNorm make_norm(std::int64_t d_model, const TransformerLayerOptions& options) {
    return LayerNorm(
        d_model,
        {.eps = options.layer_norm_eps, .bias = options.bias, .dtype = options.dtype, .device = options.device});
}

/// x + part(norm(x)), or norm(x + part(x)).
template <class Part>
Tensor with_residual(const Tensor& x, LayerNorm& norm, bool norm_first, Part part) {
    return norm_first ? x + part(norm(x)) : norm(x + part(x));
}

void require_layers(const char* name, std::int64_t layers) {
    if (layers < 0) throw ValueError(fmt::format("{}: expected num_layers of at least 0, got {}", name, layers));
}

}  // namespace

namespace {

/// @throws ValueError for an empty function
std::function<Tensor(Tensor)> activation_of(const char* name, const TransformerLayerOptions& options) {
    if (!options.activation) throw ValueError(fmt::format("{}: expected an activation, got an empty function", name));
    return options.activation;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : self_attn_(add("self_attn", make_attention(d_model, nhead, options))),
      linear1_(add("linear1", make_linear(d_model, options.dim_feedforward, options))),
      linear2_(add("linear2", make_linear(options.dim_feedforward, d_model, options))),
      norm1_(add("norm1", make_norm(d_model, options))),
      norm2_(add("norm2", make_norm(d_model, options))),
      dropout_(add("dropout", Dropout(options.dropout))),
      dropout1_(add("dropout1", Dropout(options.dropout))),
      dropout2_(add("dropout2", Dropout(options.dropout))),
      activation_(activation_of("TransformerEncoderLayer", options)),
      norm_first_(options.norm_first) {}

Tensor TransformerEncoderLayer::forward(Tensor src, AttentionMasks masks) {
    const Tensor x = with_residual(src, norm1_, norm_first_,
                                   [&](const Tensor& in) { return dropout1_(self_attn_(in, {}, {}, masks)); });
    return with_residual(x, norm2_, norm_first_,
                         [&](const Tensor& in) { return dropout2_(linear2_(dropout_(activation_(linear1_(in))))); });
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : self_attn_(add("self_attn", make_attention(d_model, nhead, options))),
      multihead_attn_(add("multihead_attn", make_attention(d_model, nhead, options))),
      linear1_(add("linear1", make_linear(d_model, options.dim_feedforward, options))),
      linear2_(add("linear2", make_linear(options.dim_feedforward, d_model, options))),
      norm1_(add("norm1", make_norm(d_model, options))),
      norm2_(add("norm2", make_norm(d_model, options))),
      norm3_(add("norm3", make_norm(d_model, options))),
      dropout_(add("dropout", Dropout(options.dropout))),
      dropout1_(add("dropout1", Dropout(options.dropout))),
      dropout2_(add("dropout2", Dropout(options.dropout))),
      dropout3_(add("dropout3", Dropout(options.dropout))),
      activation_(activation_of("TransformerDecoderLayer", options)),
      norm_first_(options.norm_first) {}

namespace {

void require_memory(const Tensor& memory) {
    if (!memory.defined())
        throw ValueError("TransformerDecoderLayer: expected memory of shape (S, N, d_model), got an undefined tensor");
}

}  // namespace

Tensor TransformerDecoderLayer::self_attend(const Tensor& tgt, const AttentionMasks& masks) {
    return with_residual(tgt, norm1_, norm_first_,
                         [&](const Tensor& in) { return dropout1_(self_attn_(in, {}, {}, masks)); });
}

Tensor TransformerDecoderLayer::attention_to_memory(const Tensor& tgt, const Tensor& memory,
                                                    const AttentionMasks& masks, const AttentionMasks& memory_masks) {
    require_memory(memory);
    const Tensor x = self_attend(tgt, masks);
    return multihead_attn_.weights(norm_first_ ? norm2_(x) : x, memory, memory_masks);
}

Tensor TransformerDecoderLayer::forward(Tensor tgt, Tensor memory, AttentionMasks masks, AttentionMasks memory_masks) {
    require_memory(memory);
    Tensor x = self_attend(tgt, masks);
    x = with_residual(x, norm2_, norm_first_,
                      [&](const Tensor& in) { return dropout2_(multihead_attn_(in, memory, memory, memory_masks)); });
    return with_residual(x, norm3_, norm_first_,
                         [&](const Tensor& in) { return dropout3_(linear2_(dropout_(activation_(linear1_(in))))); });
}

TransformerEncoder::TransformerEncoder(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                                       const TransformerLayerOptions& options, bool final_norm)
    : layers_(add("layers", ModuleList<TransformerEncoderLayer>())) {
    require_layers("TransformerEncoder", num_layers);
    for (std::int64_t i = 0; i < num_layers; ++i) layers_.append(TransformerEncoderLayer(d_model, nhead, options));
    if (final_norm) norm_ = &add("norm", make_norm(d_model, options));
}

Tensor TransformerEncoder::forward(Tensor src, AttentionMasks masks) {
    for (TransformerEncoderLayer& layer : layers_) src = layer(src, masks);
    return norm_ != nullptr ? (*norm_)(src) : src;
}

TransformerDecoder::TransformerDecoder(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                                       const TransformerLayerOptions& options, bool final_norm)
    : layers_(add("layers", ModuleList<TransformerDecoderLayer>())) {
    require_layers("TransformerDecoder", num_layers);
    for (std::int64_t i = 0; i < num_layers; ++i) layers_.append(TransformerDecoderLayer(d_model, nhead, options));
    if (final_norm) norm_ = &add("norm", make_norm(d_model, options));
}

Tensor TransformerDecoder::forward(Tensor tgt, Tensor memory, AttentionMasks masks, AttentionMasks memory_masks) {
    for (TransformerDecoderLayer& layer : layers_) tgt = layer(tgt, memory, masks, memory_masks);
    return norm_ != nullptr ? (*norm_)(tgt) : tgt;
}

std::vector<Tensor> TransformerDecoder::attention_to_memory(Tensor tgt, const Tensor& memory,
                                                            const AttentionMasks& masks,
                                                            const AttentionMasks& memory_masks) {
    std::vector<Tensor> weights;
    for (TransformerDecoderLayer& layer : layers_) {
        weights.push_back(layer.attention_to_memory(tgt, memory, masks, memory_masks));
        tgt = layer(tgt, memory, masks, memory_masks);
    }
    return weights;
}

}  // namespace declivity::nn
