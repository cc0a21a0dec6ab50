#include <declivity/models/text_classifier.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <declivity/nn/conv1d.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/transformer.hpp>

#include "checks.hpp"
#include "parts.hpp"

namespace declivity::models {
void TextCNNConfig::check() const {
    require_sizes("TextCNNConfig", {{"vocab_size", vocab_size},
                                    {"num_classes", num_classes},
                                    {"embedding_dim", embedding_dim},
                                    {"num_filters", num_filters}});
    if (filter_sizes.empty()) throw ValueError("TextCNNConfig: expected filter_sizes, got none");
    for (const std::int64_t size : filter_sizes) require_sizes("TextCNNConfig", {{"filter_sizes", size}});
    require_probabilities("TextCNNConfig", {{"dropout", dropout}});
    require_padding("TextCNNConfig", padding_idx, vocab_size);
}

/// Embedded tokens (N, D, L) and the number of tokens of each text (N, 1) -> max over time of each filter, over windows
/// without padding, (N, filters of all sizes).
class TextConvolutions : public nn::Callable<Tensor(Tensor, Tensor)> {
  public:
    TextConvolutions(const TextCNNConfig& config, const ModelOptions& options) : sizes_(config.filter_sizes) {
        for (std::size_t i = 0; i < sizes_.size(); ++i)
            convolutions_.push_back(
                &add(std::to_string(i), nn::Conv1d(config.embedding_dim, config.num_filters, sizes_[i],
                                                   {.dtype = options.dtype, .device = options.device})));
    }
    [[nodiscard]] std::string type_name() const override { return "TextConvolutions"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TextConvolutions); }

  protected:
    Tensor forward(Tensor x, Tensor lengths) override {
        std::vector<Tensor> pooled;
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            const Tensor activations = relu((*convolutions_[i])(x));
            // The window at 0 is always valid; others if they end within the text.
            const Tensor positions = arange(0, activations.size(2), 1, {DType::i64, x.device()});
            const Tensor valid = maximum(lengths - sizes_[i], zeros({}, {DType::i64, x.device()})) >= positions;
            // Activations are non-negative.
            pooled.push_back(amax(where(unsqueeze(valid, 1), activations, 0.0), {2}));
        }
        return concat(pooled, 1);
    }

  private:
    std::vector<std::int64_t> sizes_;
    std::vector<nn::Conv1d*> convolutions_;
};

TextCNN::TextCNN(const TextCNNConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      embedding_(
          add("embedding",
              nn::Embedding(config.vocab_size, config.embedding_dim,
                            {.padding_idx = config.padding_idx, .dtype = options.dtype, .device = options.device}))),
      convolutions_(add("convolutions", TextConvolutions(config, options))),
      dropout_(add("dropout", nn::Dropout(config.dropout))),
      classifier_(
          add("classifier", nn::Linear(config.num_filters * static_cast<std::int64_t>(config.filter_sizes.size()),
                                       config.num_classes, linear_options(true, options)))) {}

Tensor TextCNN::forward(Tensor input_ids) {
    require_tokens("TextCNN", input_ids, std::numeric_limits<std::int64_t>::max());
    if (input_ids.size(1) < 1)
        throw ShapeError(fmt::format("TextCNN: expected at least one token, got {}", input_ids.shape().str()));
    const Tensor lengths = sum((input_ids != config_.padding_idx).to(DType::i64), {1}, true);
    Tensor x = transpose(embedding_(input_ids), 1, 2);
    const std::int64_t max_filter_size = *std::max_element(config_.filter_sizes.begin(), config_.filter_sizes.end());
    if (x.size(2) < max_filter_size) x = pad(x, {0, max_filter_size - x.size(2)});
    return classifier_(dropout_(convolutions_(x, lengths)));
}

void TransformerClassifierConfig::check() const {
    require_sizes("TransformerClassifierConfig", {{"vocab_size", vocab_size},
                                                  {"num_classes", num_classes},
                                                  {"d_model", d_model},
                                                  {"nhead", nhead},
                                                  {"num_layers", num_layers},
                                                  {"dim_feedforward", dim_feedforward},
                                                  {"max_length", max_length}});
    require_divides("TransformerClassifierConfig", "nhead", nhead, "d_model", d_model);
    require_probabilities("TransformerClassifierConfig", {{"dropout", dropout}});
    require_padding("TransformerClassifierConfig", padding_idx, vocab_size);
}

TransformerClassifier::TransformerClassifier(const TransformerClassifierConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      tokens_(
          add("tokens",
              nn::Embedding(config.vocab_size, config.d_model,
                            {.padding_idx = config.padding_idx, .dtype = options.dtype, .device = options.device}))),
      positions_(add("positions", nn::Embedding(config.max_length, config.d_model,
                                                {.dtype = options.dtype, .device = options.device}))),
      dropout_(add("dropout", nn::Dropout(config.dropout))),
      encoder_(add("encoder", nn::TransformerEncoder(config.d_model, config.nhead, config.num_layers,
                                                     {.dim_feedforward = config.dim_feedforward,
                                                      .dropout = config.dropout,
                                                      .batch_first = true,
                                                      .norm_first = true,
                                                      .dtype = options.dtype,
                                                      .device = options.device},
                                                     true))),
      classifier_(add("classifier", nn::Linear(config.d_model, config.num_classes, linear_options(true, options)))) {
    const NoGrad no_grad;
    nn::normal_(positions_.weight(), 0, 0.02);
}

Tensor TransformerClassifier::forward(Tensor input_ids) {
    require_tokens("TransformerClassifier", input_ids, config_.max_length);
    const Tensor is_token = input_ids != config_.padding_idx;
    const Tensor position_ids = arange(0, input_ids.size(1), 1, {DType::i64, input_ids.device()});
    const Tensor x = encoder_(dropout_(tokens_(input_ids) + positions_(position_ids)),
                              nn::AttentionMasks{.key_padding_mask = logical_not(is_token)});
    const Tensor weight = unsqueeze(is_token.to(x.dtype()), 2);
    const Tensor token_count = maximum(sum(weight, {1}), ones({}, {x.dtype(), x.device()}));
    return classifier_(sum(where(unsqueeze(is_token, 2), x, 0.0), {1}) / token_count);
}

}  // namespace declivity::models
