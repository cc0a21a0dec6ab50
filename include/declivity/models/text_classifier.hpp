// Layer 7. Text classifiers: TextCNN and a transformer encoder.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/models/config.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {
class Dropout;
class Embedding;
class Linear;
class TransformerEncoder;
}  // namespace declivity::nn

namespace declivity::models {

/// @addtogroup models
/// @{

class TextConvolutions;

struct DECLIVITY_API TextCNNConfig {
    std::int64_t vocab_size = 0;
    std::int64_t num_classes = 2;
    std::int64_t embedding_dim = 128;
    std::int64_t num_filters = 100;                   ///< number of filters of each size
    std::vector<std::int64_t> filter_sizes{3, 4, 5};  ///< widths of filters in tokens
    double dropout = 0.5;
    std::int64_t padding_idx = 0;  ///< padding token

    /// @throws ValueError naming the field
    void check() const;
};

/// Convolutions over the tokens with max pooling over time (Y. Kim, Convolutional neural networks for sentence
/// classification, 2014): input_ids (N, L), i64 or i32, L >= 1 -> scores (N, num_classes). Trailing padding does not
/// affect the result, except that sequences shorter than a filter are padded to its width.
class DECLIVITY_API TextCNN : public nn::Layer {
  public:
    explicit TextCNN(const TextCNNConfig& config, const ModelOptions& options = {});
    [[nodiscard]] const TextCNNConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "TextCNN"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TextCNN); }

  protected:
    /// @throws ShapeError, TypeError
    Tensor forward(Tensor input_ids) override;

  private:
    TextCNNConfig config_;
    nn::Embedding& embedding_;
    TextConvolutions& convolutions_;
    nn::Dropout& dropout_;
    nn::Linear& classifier_;
};

struct DECLIVITY_API TransformerClassifierConfig {
    std::int64_t vocab_size = 0;
    std::int64_t num_classes = 2;
    std::int64_t d_model = 128;
    std::int64_t nhead = 4;
    std::int64_t num_layers = 2;
    std::int64_t dim_feedforward = 512;
    double dropout = 0.1;
    std::int64_t max_length = 512;  ///< maximum sequence length
    std::int64_t padding_idx = 0;   ///< padding token

    /// @throws ValueError naming the field
    void check() const;
};

/// Learned positions, a pre-norm nn::TransformerEncoder, and mean pooling over the tokens: input_ids (N, L), i64 or i32
/// -> scores (N, num_classes). Padding does not affect the result; the mean of a sequence of only padding is zero.
class DECLIVITY_API TransformerClassifier : public nn::Layer {
  public:
    explicit TransformerClassifier(const TransformerClassifierConfig& config, const ModelOptions& options = {});
    [[nodiscard]] const TransformerClassifierConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "TransformerClassifier"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TransformerClassifier); }

  protected:
    /// @throws ShapeError, TypeError
    Tensor forward(Tensor input_ids) override;

  private:
    TransformerClassifierConfig config_;
    nn::Embedding &tokens_, &positions_;
    nn::Dropout& dropout_;
    nn::TransformerEncoder& encoder_;
    nn::Linear& classifier_;
};

/// @}

}  // namespace declivity::models
