#include <declivity/models/translator.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <declivity/nn/dropout.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/transformer.hpp>

#include "checks.hpp"
#include "nn/evaluation_mode.hpp"
#include "parts.hpp"

namespace declivity::models {
namespace {

nn::TransformerLayerOptions layer_options(const TranslatorConfig& config, const ModelOptions& options) {
    return {.dim_feedforward = config.dim_feedforward,
            .dropout = config.dropout,
            .batch_first = true,
            .norm_first = true,
            .dtype = options.dtype,
            .device = options.device};
}

nn::Embedding embedding_of(std::int64_t vocab_size, const TranslatorConfig& config, const ModelOptions& options) {
    nn::Embedding table(vocab_size, config.d_model,
                        {.padding_idx = config.padding_idx, .dtype = options.dtype, .device = options.device});
    const NoGrad no_grad;
    // Scaled by sqrt(d_model) to the magnitude of the position embeddings; as the tied output weight it gives scores
    // near 1.
    table.weight().mul_(1 / std::sqrt(static_cast<double>(config.d_model)));
    return table;
}

}  // namespace

void TranslatorConfig::check() const {
    constexpr const char* name = "TranslatorConfig";
    require_sizes(name, {{"source_vocab_size", source_vocab_size},
                         {"target_vocab_size", target_vocab_size},
                         {"d_model", d_model},
                         {"nhead", nhead},
                         {"num_encoder_layers", num_encoder_layers},
                         {"num_decoder_layers", num_decoder_layers},
                         {"dim_feedforward", dim_feedforward},
                         {"max_length", max_length}});
    require_divides(name, "an even number", 2, "d_model", d_model);
    require_divides(name, "nhead", nhead, "d_model", d_model);
    require_probabilities(name, {{"dropout", dropout}});
    require_padding(name, padding_idx, std::min(source_vocab_size, target_vocab_size));
}

Translator::Translator(const TranslatorConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      source_embedding_(add("source_embedding", embedding_of(config.source_vocab_size, config, options))),
      target_embedding_(add("target_embedding", embedding_of(config.target_vocab_size, config, options))),
      dropout_(add("dropout", nn::Dropout(config.dropout))),
      encoder_(add("encoder", nn::TransformerEncoder(config.d_model, config.nhead, config.num_encoder_layers,
                                                     layer_options(config, options), true))),
      decoder_(add("decoder", nn::TransformerDecoder(config.d_model, config.nhead, config.num_decoder_layers,
                                                     layer_options(config, options), true))),
      head_(add("head", LMHead(config.tie_word_embeddings
                                   ? target_embedding_.weight()
                                   : embedding_of(config.target_vocab_size, config, options).weight()))) {}

Tensor Translator::embed(nn::Embedding& table, const Tensor& tokens) {
    const Tensor positions = arange(0, tokens.size(1), 1, {DType::i64, tokens.device()});
    const Tensor x = table(tokens) * std::sqrt(static_cast<double>(config_.d_model));
    return dropout_(x + sinusoidal_embedding(positions, config_.d_model).to(x.dtype()));
}

Tensor Translator::padding_of(const Tensor& tokens) const { return tokens == config_.padding_idx; }

Tensor Translator::encode(const Tensor& source) {
    require_tokens("Translator::encode", source, config_.max_length);
    return encoder_(embed(source_embedding_, source), nn::AttentionMasks{.key_padding_mask = padding_of(source)});
}

namespace {

/// Repeats a single text for each target.
Tensor for_each_target(const char* what, const Tensor& source_value, const Tensor& target) {
    if (source_value.size(0) == target.size(0)) return source_value;
    if (source_value.size(0) != 1)
        throw ShapeError(fmt::format("Translator: expected {} for {} texts, or for 1, got {}", what, target.size(0),
                                     source_value.size(0)));
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < source_value.rank(); ++axis)
        sizes.push_back(axis == 0 ? target.size(0) : source_value.size(axis));
    return broadcast_to(source_value, Shape(sizes));
}

}  // namespace

Tensor Translator::decode(const Tensor& target, const Tensor& memory, const Tensor& source) {
    require_tokens("Translator::decode", target, config_.max_length);
    // Tokens never attend to padding, which is after them.
    const Tensor expanded_memory = for_each_target("memory", memory, target),
                 expanded_source = for_each_target("source", source, target);
    return head_(decoder_(embed(target_embedding_, target), expanded_memory, nn::AttentionMasks{.is_causal = true},
                          nn::AttentionMasks{.key_padding_mask = padding_of(expanded_source)}));
}

Tensor Translator::forward(Tensor source, Tensor target) {
    if (!target.defined()) throw ValueError("Translator: expected a target of shape (N, T), got an undefined tensor");
    const Tensor memory = encode(source);
    return decode(target, memory, source);
}

std::vector<Tensor> Translator::attention_to_source(const Tensor& source, const Tensor& target) {
    require_tokens("Translator::attention_to_source", target, config_.max_length);
    return decoder_.attention_to_memory(embed(target_embedding_, target), encode(source),
                                        nn::AttentionMasks{.is_causal = true},
                                        nn::AttentionMasks{.key_padding_mask = padding_of(source)});
}

std::vector<text::GeneratedSequence> Translator::translate(const std::vector<std::int64_t>& source,
                                                           const std::vector<std::int64_t>& prompt,
                                                           const text::GenerationOptions& options) {
    if (source.empty()) throw ValueError("Translator::translate: expected tokens to translate, got none");
    if (prompt.empty()) throw ValueError("Translator::translate: expected a prompt with the begin token, got none");
    const auto longest = static_cast<std::int64_t>(prompt.size()) + options.max_new_tokens;
    if (longest > config_.max_length)
        throw ValueError(
            fmt::format("Translator::translate: expected prompt and max_new_tokens of at most {} tokens, got "
                        "{} and {}",
                        config_.max_length, prompt.size(), options.max_new_tokens));
    for (const auto& [name, tokens, size] : {std::tuple("source", &source, config_.source_vocab_size),
                                             std::tuple("prompt", &prompt, config_.target_vocab_size),
                                             std::tuple("end", &options.eos_token_id, config_.target_vocab_size)})
        for (const std::int64_t token : *tokens)
            if (token < 0 || token >= size)
                throw ValueError(fmt::format("Translator::translate: expected tokens of the {} in 0 .. {}, got {}",
                                             name, size - 1, token));
    text::check(options);
    const NoGrad no_grad;
    const nn::EvaluationMode evaluation(*this);
    const Device device = head_.parameters().at(0).device();
    const Tensor source_tensor = Tensor::from(source, {1, static_cast<std::int64_t>(source.size())}, device);
    const Tensor memory = encode(source_tensor);
    const text::NextLogits next = [&](const text::GenerationStep& step) {
        std::vector<std::int64_t> tokens;
        for (const auto& sequence : step.sequences) tokens.insert(tokens.end(), sequence.begin(), sequence.end());
        const auto rows = static_cast<std::int64_t>(step.sequences.size());
        const Tensor target = Tensor::from(tokens, {rows, static_cast<std::int64_t>(tokens.size()) / rows}, device);
        const Tensor scores = select(decode(target, memory, source_tensor), 1, -1).to(DType::f32);
        const std::vector<float> values = scores.to_vector<float>();
        std::vector<std::vector<float>> logits;
        for (std::int64_t row = 0; row < rows; ++row)
            logits.emplace_back(values.begin() + row * config_.target_vocab_size,
                                values.begin() + (row + 1) * config_.target_vocab_size);
        return logits;
    };
    // The padding row was never trained.
    text::GenerationOptions without_padding = options;
    without_padding.suppress_tokens.push_back(config_.padding_idx);
    return text::generate(next, prompt, without_padding);
}

}  // namespace declivity::models
