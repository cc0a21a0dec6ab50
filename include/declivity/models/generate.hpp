// Floor 5. Writing with a language model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <declivity/models/causal_lm.hpp>
#include <declivity/tensor/generator.hpp>

namespace declivity::models {

/// How the next token is chosen.
struct NextToken {
    /// From scores (N, vocab_size) to tokens (N), i64. It may read scores on the host, if it is not replayable.
    std::function<Tensor(const Tensor& scores)> choose;
    /// Whether it only enqueues, the same each time but for what tensors hold and generators draw: it becomes part of
    /// the recorded step then (docs/recording.md).
    bool replayable = false;
};

/// The token of the largest score.
DECLIVITY_API NextToken greedy();

struct SamplingOptions {
    double temperature = 1;                            ///< above 0: scores are divided by it
    std::optional<std::int64_t> top_k = std::nullopt;  ///< only so many of the largest scores, at least 1
    /// Only the likeliest tokens, as many as it takes for probabilities to add up to so much, in (0, 1] (A. Holtzman et
    /// al., The curious case of neural text degeneration, 2019).
    std::optional<double> top_p = std::nullopt;
    std::optional<Generator> generator = std::nullopt;  ///< the device's own if none
};
/// A token by chance, with probability softmax(scores / temperature) among those that top_k and then top_p leave.
/// @throws ValueError naming the option
DECLIVITY_API NextToken sampling(const SamplingOptions& options = {});

enum class PromptPadding : std::uint8_t { right, left };

struct GenerateOptions {
    std::int64_t max_new_tokens = 20;
    NextToken next = greedy();
    /// (N), whole numbers from 1 to L (others stand for the nearest of these): tokens of each prompt, where the others
    /// of a row only fill it up; all if none.
    Tensor lengths = {};
    PromptPadding padding = PromptPadding::right;  ///< where rows are filled up
    std::vector<std::int64_t> eos_token_ids = {};  ///< a text ends with one of them
    std::int64_t pad_token_id = 0;                 ///< behind its end
    bool use_cache = true;                         ///< if not, each step computes the whole text anew
    nn::KeyValueCacheOptions cache = {};           ///< f32 stands for the type of the model
    bool record = true;                            ///< steps of one token are replayed
    std::int64_t eos_interval = 16;                ///< steps after which the host asks whether all texts have ended
};

struct Generated {
    Tensor tokens;   ///< (N, L + max_new_tokens), i64: each prompt, what follows it, and pad_token_id behind
    Tensor lengths;  ///< (N), i64: of the prompt and what follows, the token that ends it included
};

/// Writes behind prompts (N, L), i64, in evaluation mode and without a graph: the prompts are read in one call, then
/// each step reads one token and keeps its keys and values. What it gives does not depend on the cache, but for
/// rounding. Like transformers' generate(), with prompts at the beginning of rows in any case.
/// @throws ValueError where the texts would be longer than the model's; ShapeError, TypeError
DECLIVITY_API Generated generate(CausalLM& model, const Tensor& prompts, const GenerateOptions& options = {});

}  // namespace declivity::models
