// Layer 5. GPT-2.
#pragma once

#include <declivity/models/causal_lm.hpp>

namespace declivity::models {

class GPT2Model;
class LMHead;

/// GPT-2 with its head: the names of parameters are those of transformers' GPT2LMHeadModel. Weights of its layers lie
/// as in nn::Linear, (out, in); in files they are transposed, which load and save look after. Dropout while training.
class DECLIVITY_API GPT2 : public CausalLM {
  public:
    /// Initial values as there: normal with initializer_range, less where residuals add up.
    /// @throws ValueError as config.check()
    explicit GPT2(const GPT2Config& config, const ModelOptions& options = {});
    /// From a folder with config.json and safetensors, or several of them with an index.
    /// @throws FormatError naming file and place; IoError; ValueError naming what is missing; ShapeError
    static GPT2 from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options = {});
    /// Reads parameters from what io::SafetensorsReader reads, with or without "transformer." in front of their names.
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    /// Writes config.json and the parameters, for from_pretrained here and there.
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] const GPT2Config& config() const noexcept { return config_; }

    [[nodiscard]] Tensor hidden_states(Tensor input_ids, CausalInputs inputs) override;
    [[nodiscard]] Tensor logits(Tensor hidden) override;
    [[nodiscard]] std::int64_t vocab_size() const override { return config_.vocab_size; }
    [[nodiscard]] std::int64_t max_positions() const override { return config_.n_positions; }
    [[nodiscard]] nn::KeyValueCache make_cache(std::int64_t batch, std::int64_t max_length,
                                               const nn::KeyValueCacheOptions& options = {}) const override;
    [[nodiscard]] std::string type_name() const override { return "GPT2"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GPT2); }

  private:
    GPT2Config config_;
    GPT2Model& transformer_;
    LMHead& lm_head_;
};

}  // namespace declivity::models
