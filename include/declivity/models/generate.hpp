// Layer 7. Text generation with a language model and a KV cache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <declivity/models/causal_lm.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/text/generation.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

using text::FinishReason;
using text::GeneratedSequence;
using text::GeneratedToken;
using text::GenerationOptions;
using text::NextToken;
using text::PromptPadding;
/// Makes the overloads for functions of logits and nn::Layer available under this name, too.
using text::generate;
using GenerateOptions [[deprecated("text::GenerationOptions")]] = text::GenerationOptions;

/// Greedy decoding: the token of the largest score, with ties resolved to the lowest id; -1 if a score is NaN or none
/// is above -infinity, which generate() reports as an error.
DECLIVITY_API NextToken greedy();

struct SamplingOptions {
    double temperature = 1;                             ///< above 0 and finite: scores are divided by it
    std::optional<std::int64_t> top_k = std::nullopt;   ///< see GenerationOptions::top_k, at least 1
    std::optional<double> top_p = std::nullopt;         ///< see GenerationOptions::top_p, in (0, 1]
    std::optional<Generator> generator = std::nullopt;  ///< generator of the device if none
    std::optional<double> min_p = std::nullopt;         ///< see GenerationOptions::min_p, in [0, 1]
};
/// Samples a token on the device, without synchronising: with probability softmax(scores / temperature) among those
/// that remain after top_k, then top_p and then min_p, as GenerationOptions with do_sample. -1 if a score is NaN or
/// none is above -infinity, which generate() reports as an error.
/// @throws ValueError naming the option
DECLIVITY_API NextToken sampling(const SamplingOptions& options = {});

struct Generated {
    /// (N, L + max_new_tokens), i64: each prompt, the generated tokens, then pad_token_id; num_return_sequences rows
    /// for each prompt
    Tensor tokens;
    Tensor lengths;  ///< (N), i64: length of prompt and generated tokens, including the end token
};

/// Generates tokens after prompts (N, L), i64 or i32, in evaluation mode and without gradients: the prompts are
/// processed in one call (prefill), then each step processes one token and appends to the KV cache. The result does not
/// depend on the cache, up to rounding. As transformers' generate(), with prompts always at the beginning of rows.
///
/// All GenerationOptions are supported; sequences equal those of text::generate() for the same logits. If tokens depend
/// only on the largest score (or `next`) and end tokens, they are chosen on the device, and the host synchronises every
/// eos_interval steps; otherwise it reads the scores in each step.
/// @throws ValueError for options out of range, tokens outside of the vocabulary, sequences longer than the model's
/// max_positions(), scores without a valid choice (NaN), and `next` combined with do_sample, beams, penalties, bans,
/// stop sequences or a callback; ShapeError, TypeError
DECLIVITY_API Generated generate(CausalLM& model, const Tensor& prompts, const GenerationOptions& options = {});

/// Overload for token lists of any lengths: num_return_sequences for each prompt, one prompt after the other, as in
/// text::generate().
/// @throws ValueError as above, for an empty prompt, and for `next`, which requires tensors
DECLIVITY_API std::vector<GeneratedSequence> generate(CausalLM& model,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
/// Overload for one list of tokens.
DECLIVITY_API std::vector<GeneratedSequence> generate(CausalLM& model, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});

/// @}

}  // namespace declivity::models
