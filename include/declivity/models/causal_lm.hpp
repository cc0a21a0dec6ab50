// Layer 5. What all language models have that write from left to right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <declivity/models/config.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/nn/kv_cache.hpp>

namespace declivity::models {

/// What a call may be given beside the tokens.
struct CausalInputs {
    /// Of the tokens before, where they were calls of their own: the tokens are those that follow, and theirs are kept.
    nn::KeyValueCache cache = {};
    /// (N, L), bool or numbers: false or 0 where a token only fills up a row. Not beside a cache.
    Tensor attention_mask = {};
    /// (N, L), i64: places of the tokens; if none, 0, 1, ..., or those behind what is in the cache.
    Tensor position_ids = {};
    /// Each layer keeps for its gradients what it gets alone, and is computed again by backward (see checkpoint()); not
    /// beside a cache.
    bool gradient_checkpointing = false;
};
inline std::vector<Tensor> tensors_of(const CausalInputs& inputs) {
    std::vector<Tensor> all = tensors_of(inputs.cache);
    all.insert(all.end(), {inputs.attention_mask, inputs.position_ids});
    return all;
}

/// input_ids (N, L), i64 or i32 -> scores of the next token at each place, (N, L, vocab_size).
class DECLIVITY_API CausalLM : public nn::Callable<Tensor(Tensor, CausalInputs)> {
  public:
    /// What the scores are made from, (N, L, width): the same call without its last product.
    [[nodiscard]] virtual Tensor hidden_states(Tensor input_ids, CausalInputs inputs) = 0;
    /// (..., width) -> (..., vocab_size)
    [[nodiscard]] virtual Tensor logits(Tensor hidden) = 0;
    [[nodiscard]] virtual std::int64_t vocab_size() const = 0;
    /// Tokens of the longest text.
    [[nodiscard]] virtual std::int64_t max_positions() const = 0;
    /// Room for `batch` texts of up to max_length tokens; the type is that of the parameters where options have f32.
    [[nodiscard]] virtual nn::KeyValueCache make_cache(std::int64_t batch, std::int64_t max_length,
                                                       const nn::KeyValueCacheOptions& options = {}) const = 0;
    /// CausalInputs::gradient_checkpointing for every call, while training.
    void set_gradient_checkpointing(bool on = true) noexcept { gradient_checkpointing_ = on; }

  protected:
    Tensor forward(Tensor input_ids, CausalInputs inputs) override;

  private:
    bool gradient_checkpointing_ = false;
};

/// For models from files.
struct PretrainedOptions {
    DType dtype = DType::f32;                     ///< of the parameters, to which those of the files are converted
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    /// Whether a parameter that the files lack is an error; if not, it keeps its initial values.
    bool strict = true;
};

}  // namespace declivity::models
