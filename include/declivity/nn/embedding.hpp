// Floor 4. Embedding: a table whose rows are learned.
#pragma once

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

struct EmbeddingOptions {
    /// A number whose row starts as zeros and gets no gradient; a negative one counts from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Numbers of any shape S, i32 or i64 in [0, num_embeddings), give rows (S..., embedding_dim) of the weight
/// (num_embeddings, embedding_dim), which starts normally distributed; see declivity::embedding.
class DECLIVITY_API Embedding : public Layer {
  public:
    Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] std::string type_name() const override { return "Embedding"; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Embedding); }

  protected:
    Tensor forward(Tensor indices) override;

  private:
    std::optional<std::int64_t> padding_idx_;
    Parameter weight_;
};

}  // namespace declivity::nn
