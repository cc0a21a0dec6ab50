// Layer 7. Llama, and models of the same architecture.
#pragma once

#include <declivity/models/causal_lm.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

class LlamaModel;
class LMHead;

/// Llama, Mistral or Qwen2 with language model head, depending on the config: parameter names are those of
/// LlamaForCausalLM in transformers. RMSNorm, rotary positions, grouped-query attention, SwiGLU.
class DECLIVITY_API Llama : public CausalLM {
  public:
    /// Initialised from a normal distribution with initializer_range. @throws ValueError as config.check()
    explicit Llama(const LlamaConfig& config, const ModelOptions& options = {});
    /// Loads a folder with config.json and a safetensors file, or several with an index.
    /// @throws FormatError naming file and position; IoError; ValueError listing what is missing; ShapeError
    static Llama from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options = {});
    /// Loads parameters from what io::SafetensorsReader reads, with or without the prefix "model." of their names.
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    /// Writes config.json and the parameters, in the format of from_pretrained here and in transformers.
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] const LlamaConfig& config() const noexcept { return config_; }

    [[nodiscard]] Tensor hidden_states(Tensor input_ids, CausalInputs inputs) override;
    [[nodiscard]] Tensor logits(Tensor hidden) override;
    [[nodiscard]] std::int64_t vocab_size() const override { return config_.vocab_size; }
    [[nodiscard]] std::int64_t max_positions() const override { return config_.max_position_embeddings; }
    [[nodiscard]] nn::KeyValueCache make_cache(std::int64_t batch, std::int64_t max_length,
                                               const nn::KeyValueCacheOptions& options = {}) const override;
    [[nodiscard]] std::string type_name() const override { return "Llama"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Llama); }

  private:
    LlamaConfig config_;
    LlamaModel& model_;
    LMHead& lm_head_;
};

/// @}

}  // namespace declivity::models
