// Layer 6. Embedding: a learned lookup table.
#pragma once

#include <declivity/functions/embedding.hpp>
#include <declivity/nn/callable.hpp>

namespace declivity::nn {

/// @addtogroup nn_embedding
/// @{

struct EmbeddingOptions {
    /// Index whose row is initialised to zeros and gets no gradient; negative indices count from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    std::optional<double> max_norm = std::nullopt;  ///< see EmbeddingParameters
    double norm_type = 2;
    bool scale_grad_by_freq = false;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Looks up rows of the weight (num_embeddings, embedding_dim), which is initialised from a standard normal
/// distribution: indices of any shape S, i32 or i64 in [0, num_embeddings) -> (S..., embedding_dim); see
/// declivity::embedding.
class DECLIVITY_API Embedding : public Layer {
  public:
    Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingOptions& options = {});
    /// Embedding with a copy of a table (num_embeddings, embedding_dim), of its type and on its device, that is frozen
    /// unless `freeze` is false. The row of padding_idx is not changed.
    [[nodiscard]] static Embedding from_pretrained(const Tensor& table, bool freeze = true,
                                                   const EmbeddingOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] std::string type_name() const override { return "Embedding"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Embedding); }

  protected:
    Tensor forward(Tensor indices) override;

  private:
    Embedding(const Tensor& table, const EmbeddingOptions& options);

    std::optional<std::int64_t> padding_idx_;
    std::optional<double> max_norm_;
    double norm_type_;
    bool scale_grad_by_freq_;
    Parameter weight_;
};

struct EmbeddingBagOptions {
    BagMode mode = BagMode::mean;
    bool include_last_offset = false;  ///< see EmbeddingBagParameters
    /// Index that is ignored, and whose row is initialised to zeros; negative indices count from the end.
    std::optional<std::int64_t> padding_idx = std::nullopt;
    std::optional<double> max_norm = std::nullopt;
    double norm_type = 2;
    bool scale_grad_by_freq = false;
    DType dtype = DType::f32;                     ///< of the parameters
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Reduces bags of rows of the weight (num_embeddings, embedding_dim), which is initialised from a standard normal
/// distribution. Called with indices (B, L), or (N) and offsets (B), and, for BagMode::sum, per_sample_weights; see
/// declivity::embedding_bag.
class DECLIVITY_API EmbeddingBag : public Callable<Tensor(Tensor, Tensor, Tensor)> {
  public:
    EmbeddingBag(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingBagOptions& options = {});
    /// See Embedding::from_pretrained.
    [[nodiscard]] static EmbeddingBag from_pretrained(const Tensor& table, bool freeze = true,
                                                      const EmbeddingBagOptions& options = {});
    [[nodiscard]] Tensor weight() const { return weight_; }
    [[nodiscard]] std::string type_name() const override { return "EmbeddingBag"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(EmbeddingBag); }

  protected:
    Tensor forward(Tensor indices, Tensor offsets, Tensor per_sample_weights) override;

  private:
    EmbeddingBag(const Tensor& table, const EmbeddingBagOptions& options);

    BagMode mode_;
    bool include_last_offset_;
    std::optional<std::int64_t> padding_idx_;
    std::optional<double> max_norm_;
    double norm_type_;
    bool scale_grad_by_freq_;
    Parameter weight_;
};

/// @}

}  // namespace declivity::nn
