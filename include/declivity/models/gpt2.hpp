// Layer 7. GPT-2.
#pragma once

#include <declivity/models/causal_lm.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

class GPT2Model;
class LMHead;

/// GPT-2 with language model head: parameter names are those of GPT2LMHeadModel in transformers. Linear weights have
/// the layout of nn::Linear, (out, in); load and save transpose those of files. Dropout in training mode.
class DECLIVITY_API GPT2 : public CausalLM {
  public:
    /// Initialised as the original: normal with initializer_range, scaled down before residual additions.
    /// @throws ValueError as config.check()
    explicit GPT2(const GPT2Config& config, const ModelOptions& options = {});
    /// Loads a folder with config.json and a safetensors file, or several with an index.
    /// @throws FormatError naming file and position; IoError; ValueError listing what is missing; ShapeError
    static GPT2 from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options = {});
    /// Loads parameters from what io::SafetensorsReader reads, with or without the prefix "transformer." of their
    /// names.
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    /// Writes config.json and the parameters, in the format of from_pretrained here and in transformers.
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

/// @}

}  // namespace declivity::models
