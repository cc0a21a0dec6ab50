// Layer 7. Vision transformer encoder and image classifier.
#pragma once

#include <cstdint>
#include <filesystem>

#include <declivity/models/bert.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

class ViTEmbeddings;
class ViTEncoder;

/// Images (N, num_channels, image_size, image_size) -> hidden states of the class token and of each patch. Names as in
/// ViTModel of transformers.
class DECLIVITY_API ViT : public nn::Callable<EncoderOutput(Tensor)> {
  public:
    /// Initialised from a normal distribution with initializer_range. @throws ValueError as config.check()
    explicit ViT(const ViTConfig& config, const ModelOptions& options = {}, bool add_pooling_layer = true);
    /// Loads a folder with config.json and safetensors files, of a model with or without a head.
    /// @throws FormatError naming file and position; IoError; ValueError listing what is missing; ShapeError
    static ViT from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options = {},
                               bool add_pooling_layer = true);
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] const ViTConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "ViT"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ViT); }

  protected:
    EncoderOutput forward(Tensor pixel_values) override;

  private:
    ViTConfig config_;
    ViTEmbeddings& embeddings_;
    ViTEncoder& encoder_;
    nn::Layer& layernorm_;
    BERTPooler* pooler_ = nullptr;
};

/// ViT image classifier: scores (N, num_labels). Names as in ViTForImageClassification of transformers.
class DECLIVITY_API ViTForImageClassification : public nn::Layer {
  public:
    explicit ViTForImageClassification(const ViTConfig& config, const ModelOptions& options = {});
    static ViTForImageClassification from_pretrained(const std::filesystem::path& folder,
                                                     const PretrainedOptions& options = {});
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] ViT& vit() const noexcept { return vit_; }
    [[nodiscard]] std::string type_name() const override { return "ViTForImageClassification"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ViTForImageClassification); }

  protected:
    Tensor forward(Tensor pixel_values) override;

  private:
    ViT& vit_;
    nn::Layer& classifier_;
};

/// @}

}  // namespace declivity::models
