// Layer 7, private. Adapts a causal model with a KV cache to the logits function of text::generate().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/models/causal_lm.hpp>
#include <declivity/text/generation.hpp>

namespace declivity::models {

/// KV cache for generate(), with room for `texts` sequences of `max_length` tokens.
nn::KeyValueCache cache_for(const CausalLM& model, std::int64_t texts, std::int64_t max_length,
                            const text::GenerationOptions& options);

/// Device of a model's token inputs.
std::optional<Device> device_of(const CausalLM& model);

/// Row lengths[b] + offset - 1 of each (N, L, width): (N, width).
Tensor gather_last(const Tensor& hidden, const Tensor& lengths, std::int64_t offset);

/// Called with the steps of text::generate(): a step that does not continue the previous one prefills its sequences,
/// others decode one token each. Each sequence has a row of the cache; if several continue the same one, rows are
/// copied.
class CachedLogits {
  public:
    /// @param texts maximum number of concurrent sequences; @param max_length maximum number of tokens of a sequence
    CachedLogits(CausalLM& model, std::int64_t texts, std::int64_t max_length, const text::GenerationOptions& options);
    CachedLogits(const CachedLogits&) = delete;
    CachedLogits& operator=(const CachedLogits&) = delete;

    std::vector<std::vector<float>> operator()(const text::GenerationStep& step);

  private:
    Tensor prefill(const text::GenerationStep& step);
    Tensor decode_step(const text::GenerationStep& step);

    CausalLM& model_;
    std::int64_t texts_;
    bool capture_;
    std::optional<Device> device_;
    nn::KeyValueCache cache_;
    CapturedStep step_;
    [[nodiscard]] bool continues_previous(const text::GenerationStep& step) const;

    std::vector<std::vector<std::int64_t>> previous_sequences_;  // sequences of the last call
    std::vector<std::size_t> cache_rows_;                        // row of each of them
    std::int64_t longest_ = 0;                                   // tokens of the longest sequence in the cache
};

}  // namespace declivity::models
