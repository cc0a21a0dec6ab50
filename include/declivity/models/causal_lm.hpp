// Layer 7. CausalLM: base class of autoregressive language models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <declivity/models/config.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/nn/kv_cache.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

/// Optional inputs in addition to the tokens.
struct CausalInputs {
    /// KV cache with the previous tokens: the input is their continuation, which is appended to the cache.
    nn::KeyValueCache cache = {};
    /// (N, L), bool or numbers: false or 0 at padding. Not with a cache.
    Tensor attention_mask = {};
    /// (N, L), i64: positions of the tokens; by default 0, 1, ..., or those following the tokens in the cache.
    Tensor position_ids = {};
    /// Gradient checkpointing: each layer saves only its input for backward and is recomputed there (see checkpoint());
    /// not with a cache.
    bool gradient_checkpointing = false;
};
inline std::vector<Tensor> tensors_of(const CausalInputs& inputs) {
    std::vector<Tensor> all = tensors_of(inputs.cache);
    all.insert(all.end(), {inputs.attention_mask, inputs.position_ids});
    return all;
}

/// Maps input_ids (N, L), i64 or i32 to logits of the next token at each position, (N, L, vocab_size).
class DECLIVITY_API CausalLM : public nn::Callable<Tensor(Tensor, CausalInputs)> {
  public:
    /// Final hidden states (N, L, width): forward without the output projection.
    [[nodiscard]] virtual Tensor hidden_states(Tensor input_ids, CausalInputs inputs) = 0;
    /// Output projection: (..., width) -> (..., vocab_size)
    [[nodiscard]] virtual Tensor logits(Tensor hidden) = 0;
    [[nodiscard]] virtual std::int64_t vocab_size() const = 0;
    /// Maximum sequence length in tokens.
    [[nodiscard]] virtual std::int64_t max_positions() const = 0;
    /// Creates a cache for `batch` sequences of up to max_length tokens; a type of f32 in options stands for that of
    /// the parameters.
    [[nodiscard]] virtual nn::KeyValueCache make_cache(std::int64_t batch, std::int64_t max_length,
                                                       const nn::KeyValueCacheOptions& options = {}) const = 0;
    /// Enables CausalInputs::gradient_checkpointing for every call in training mode.
    void set_gradient_checkpointing(bool on = true) noexcept { gradient_checkpointing_ = on; }

  protected:
    Tensor forward(Tensor input_ids, CausalInputs inputs) override;

  private:
    bool gradient_checkpointing_ = false;
};

/// Options of from_pretrained.
struct PretrainedOptions {
    DType dtype = DType::f32;                     ///< of the parameters; those of the files are converted
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    /// True: a parameter missing from the files is an error; false: it keeps its initial values.
    bool strict = true;
};

/// @}

}  // namespace declivity::models
