// Layer 7. Translator: an encoder-decoder transformer for translation.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/models/config.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/text/generation.hpp>

namespace declivity::nn {
class Dropout;
class Embedding;
class TransformerDecoder;
class TransformerEncoder;
}  // namespace declivity::nn

namespace declivity::models {

/// @addtogroup models
/// @{

class LMHead;

struct DECLIVITY_API TranslatorConfig {
    std::int64_t source_vocab_size = 0;
    std::int64_t target_vocab_size = 0;
    std::int64_t d_model = 128;
    std::int64_t nhead = 4;
    std::int64_t num_encoder_layers = 2;
    std::int64_t num_decoder_layers = 2;
    std::int64_t dim_feedforward = 512;
    double dropout = 0.1;
    std::int64_t max_length = 512;    ///< maximum sequence length of source and target
    std::int64_t padding_idx = 0;     ///< padding token of source and target
    bool tie_word_embeddings = true;  ///< ties the output projection to the target embeddings

    /// @throws ValueError naming the field
    void check() const;
};

/// Transformer of A. Vaswani et al. (Attention is all you need, 2017), with sinusoidal positions and pre-norm layers:
/// source (N, S) and target (N, T), i64 or i32 -> scores of the token after each target position, (N, T,
/// target_vocab_size). For training (teacher forcing) shift the target by one: it starts with a begin token, and the
/// labels end with an end token. Exclude scores at target padding from the loss (CrossEntropyOptions::ignore_index).
///
///     models::Translator model({.source_vocab_size = 100, .target_vocab_size = 80});
///     Tensor scores = model(source, target);
///     auto written = model.translate(tokens, {kBegin}, {.eos_token_id = {kEnd}, .num_beams = 4});
class DECLIVITY_API Translator : public nn::Callable<Tensor(Tensor source, Tensor target)> {
  public:
    explicit Translator(const TranslatorConfig& config, const ModelOptions& options = {});
    /// Encoder output: (N, S) -> (N, S, d_model).
    [[nodiscard]] Tensor encode(const Tensor& source);
    /// @param memory result of encode(source), whose batch size may be 1 to share it among all targets
    [[nodiscard]] Tensor decode(const Tensor& target, const Tensor& memory, const Tensor& source);
    /// Cross-attention weights from target to source for each layer: (N, heads, T, S) each.
    [[nodiscard]] std::vector<Tensor> attention_to_source(const Tensor& source, const Tensor& target);
    /// Generates a translation after `prompt`, which includes the begin token, in evaluation mode and without
    /// gradients.
    /// @throws ValueError as text::generate(), and if the sequence would exceed the model's maximum length
    [[nodiscard]] std::vector<text::GeneratedSequence> translate(const std::vector<std::int64_t>& source,
                                                                 const std::vector<std::int64_t>& prompt,
                                                                 const text::GenerationOptions& options = {});
    [[nodiscard]] const TranslatorConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "Translator"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Translator); }

  protected:
    /// @throws ShapeError, TypeError
    Tensor forward(Tensor source, Tensor target) override;

  private:
    [[nodiscard]] Tensor embed(nn::Embedding& table, const Tensor& tokens);
    [[nodiscard]] Tensor padding_of(const Tensor& tokens) const;

    TranslatorConfig config_;
    nn::Embedding &source_embedding_, &target_embedding_;
    nn::Dropout& dropout_;
    nn::TransformerEncoder& encoder_;
    nn::TransformerDecoder& decoder_;
    LMHead& head_;
};

/// @}

}  // namespace declivity::models
