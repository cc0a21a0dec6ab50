// Floor 5. Generation: how the next token is chosen from the logits of a model, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/export.hpp>

namespace declivity::text {

/// Settings by the names of Hugging Face's GenerationConfig, and with its meaning.
struct GenerationOptions {
    std::int64_t max_new_tokens = 20;
    std::int64_t min_new_tokens = 0;  ///< eos_token_id is not chosen before
    bool do_sample = false;           ///< draws; otherwise the most probable token is taken
    double temperature = 1;           ///< logits are divided by it
    std::int64_t top_k = 0;           ///< only the k most probable tokens; 0 for all
    double top_p = 1;                 ///< only the most probable tokens whose probabilities come to p together
    double min_p = 0;                 ///< only tokens of at least this share of the largest probability
    double typical_p = 1;             ///< only the most typical tokens that come to p together (Meister et al. 2023)
    /// Above 1, logits of tokens that were there are divided by it where positive and multiplied where negative
    /// (Keskar et al. 2019).
    double repetition_penalty = 1;
    /// Taken off the logits of tokens that were generated, once, and times how often they were (OpenAI's API).
    double presence_penalty = 0;
    double frequency_penalty = 0;
    std::int64_t no_repeat_ngram_size = 0;                       ///< no n tokens come twice; 0 for any
    std::vector<std::int64_t> suppress_tokens = {};              ///< are never chosen
    std::vector<std::int64_t> eos_token_id = {};                 ///< end a sequence, and are its last token
    std::vector<std::vector<std::int64_t>> stop_sequences = {};  ///< end a sequence when they were generated
    std::int64_t num_beams = 1;
    double length_penalty = 1;  ///< beams are ranked by their log probability / number of tokens^length_penalty
    /// Ends beam search as soon as num_beams sequences are finished; otherwise when no better one can be expected.
    bool early_stopping = false;
    std::int64_t num_return_sequences = 1;  ///< at most num_beams, where there are beams and nothing is drawn
    std::uint64_t seed = 0;                 ///< of what is drawn
};
/// @throws ValueError naming the option that is out of range
DECLIVITY_API void check(const GenerationOptions& options);

/// Changes logits as the options say, tokens that are ruled out to -infinity: penalties and bans, then, where do_sample
/// is true, temperature, top_k, top_p, min_p, typical_p.
/// @param logits of one position, one for each token of the vocabulary
/// @param tokens that stand before; @param prompt how many of them were given
/// @throws ValueError for a token that is not in the vocabulary, and where no token is left
DECLIVITY_API void process_logits(std::span<float> logits, std::span<const std::int64_t> tokens, std::size_t prompt,
                                  const GenerationOptions& options);

/// The token of the largest logit, the first one of several. @throws ValueError for none, or NaN
DECLIVITY_API std::int64_t argmax(std::span<const float> logits);
/// Draws a token by softmax(logits). @throws ValueError where none has a probability, or for NaN
DECLIVITY_API std::int64_t sample(std::span<const float> logits, data::Random& random);
/// log(softmax(logits)), in double. @throws ValueError for NaN
DECLIVITY_API std::vector<double> log_softmax(std::span<const float> logits);

struct GeneratedSequence {
    std::vector<std::int64_t> tokens;  ///< those that were generated, without the prompt
    /// Sum of the log probabilities of the tokens, by the processed logits; of beams divided as length_penalty says.
    double score = 0;
    bool finished = false;  ///< by an end or stop token, not by max_new_tokens
};

/// From sequences of tokens to the logits of what follows each: `logits[i]` of `sequences[i]`, one number for each
/// token of the vocabulary. It gets all tokens, the prompt too; a model with a cache keeps what it knows of a
/// beginning. `parents[i]` says from which sequence of the call before sequence i goes on (its cache is that of the
/// parent), and is i in the first call.
struct GenerationStep {
    std::vector<std::vector<std::int64_t>> sequences;
    std::vector<std::int64_t> parents;
};
using NextLogits = std::function<std::vector<std::vector<float>>(const GenerationStep& step)>;
/// The same of one sequence.
using NextLogitsOfOne = std::function<std::vector<float>(std::span<const std::int64_t> tokens)>;

/// Writes on after a prompt: greedily, by drawing (do_sample), by beam search (num_beams above 1) or by beams that are
/// drawn (both). What is drawn depends on the seed alone.
///
///     auto written = text::generate([&](std::span<const std::int64_t> tokens) { return logits_of(model, tokens); },
///                                   tokenizer.ids("Once"), {.max_new_tokens = 50, .do_sample = true, .top_p = 0.9});
///     std::cout << tokenizer.decode(written[0].tokens);
///
/// @returns num_return_sequences of them, of beams the best ones, best first
/// @throws ValueError for options out of range, and logits of another number than those before; whatever `next` throws
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogits& next, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});

}  // namespace declivity::text
