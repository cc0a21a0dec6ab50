// Layer 5, private. A causal model with a KV cache as the function of logits that text::generate() takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/models/causal_lm.hpp>
#include <declivity/tensor/capture.hpp>
#include <declivity/text/generation.hpp>

namespace declivity::models {

/// The cache of generate(), with room for `texts` of `room` tokens.
nn::KeyValueCache cache_for(const CausalLM& model, std::int64_t texts, std::int64_t room,
                            const text::GenerationOptions& options);

/// Where tokens of a model go.
std::optional<Device> device_of(const CausalLM& model);

/// Row lengths[b] + behind - 1 of each (N, L, width): (N, width).
Tensor last_of(const Tensor& hidden, const Tensor& lengths, std::int64_t behind);

/// Called with the steps of text::generate(): one that does not go on from the last reads its sequences, the others
/// read a token of each. A sequence has a row of the cache; where several go on from one, rows are copied.
class CachedLogits {
  public:
    /// @param texts sequences that are under way at once; @param room tokens of the longest
    CachedLogits(CausalLM& model, std::int64_t texts, std::int64_t room, const text::GenerationOptions& options);
    CachedLogits(const CachedLogits&) = delete;
    CachedLogits& operator=(const CachedLogits&) = delete;

    std::vector<std::vector<float>> operator()(const text::GenerationStep& step);

  private:
    Tensor read_prompts(const text::GenerationStep& step);
    Tensor read_tokens(const text::GenerationStep& step);

    CausalLM& model_;
    std::int64_t texts_;
    bool record_;
    std::optional<Device> device_;
    nn::KeyValueCache cache_;
    CapturedStep step_;
    [[nodiscard]] bool continues(const text::GenerationStep& step) const;

    std::vector<std::vector<std::int64_t>> before_;  // sequences of the last call
    std::vector<std::size_t> row_of_;                // of each of them
    std::int64_t longest_ = 0;                       // tokens of the longest sequence in the cache
};

}  // namespace declivity::models
