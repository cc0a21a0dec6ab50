// Layer 5. Text generation with a language model and a KV cache, token by token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <declivity/models/causal_lm.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/text/generation.hpp>

namespace declivity::models {

using text::FinishReason;
using text::GeneratedSequence;
using text::GeneratedToken;
using text::GenerationOptions;
using text::NextToken;
using text::PromptPadding;
/// Functions of logits and nn::Layer are taken under this name, too.
using text::generate;
/// Deprecated name of GenerationOptions.
using GenerateOptions = text::GenerationOptions;

/// The token of the largest score, of equal ones that of the lower id; -1 where a score is NaN or none is above
/// -infinity, which generate() refuses.
DECLIVITY_API NextToken greedy();

struct SamplingOptions {
    double temperature = 1;                             ///< above 0 and finite: scores are divided by it
    std::optional<std::int64_t> top_k = std::nullopt;   ///< as GenerationOptions::top_k, at least 1
    std::optional<double> top_p = std::nullopt;         ///< as GenerationOptions::top_p, in (0, 1]
    std::optional<Generator> generator = std::nullopt;  ///< the device's own if none
    std::optional<double> min_p = std::nullopt;         ///< as GenerationOptions::min_p, in [0, 1]
};
/// A token by chance, on the device and without a wait: with probability softmax(scores / temperature) among those that
/// top_k, then top_p and then min_p leave, which are those that GenerationOptions leaves with do_sample. -1 where a
/// score is NaN or none is above -infinity, which generate() refuses.
/// @throws ValueError naming the option
DECLIVITY_API NextToken sampling(const SamplingOptions& options = {});

struct Generated {
    /// (N, L + max_new_tokens), i64: each prompt, what follows it, and pad_token_id behind; num_return_sequences rows
    /// for each prompt
    Tensor tokens;
    Tensor lengths;  ///< (N), i64: of the prompt and what follows, the token that ends it included
};

/// Generates tokens behind prompts (N, L), i64 or i32, in evaluation mode and without a graph: the prompts are read in
/// one call, then each step reads one token and keeps its keys and values. What it gives does not depend on the cache,
/// but for rounding. Like transformers' generate(), with prompts at the beginning of rows in any case.
///
/// All of GenerationOptions count; sequences are those of text::generate() for the same logits. Where nothing but the
/// largest score (or `next`) and end tokens decide, tokens are chosen on the device, and the host waits every
/// eos_interval steps; otherwise it reads the scores of each step.
/// @throws ValueError for options out of range, tokens outside of the vocabulary, texts longer than the model's
/// max_positions(), scores of which none can be chosen (NaN), and `next` beside do_sample, beams, penalties, bans, stop
/// sequences or a callback; ShapeError, TypeError
DECLIVITY_API Generated generate(CausalLM& model, const Tensor& prompts, const GenerationOptions& options = {});

/// The same of lists of tokens, of any lengths: num_return_sequences for each prompt, one prompt after the other, as
/// text::generate() gives them.
/// @throws ValueError as above, for an empty prompt, and for `next`, which is for tensors
DECLIVITY_API std::vector<GeneratedSequence> generate(CausalLM& model,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(CausalLM& model, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});

}  // namespace declivity::models
