// Layer 5. Generation: how the next token is chosen from the logits of a model, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/export.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/nn/kv_cache.hpp>

namespace declivity::text {

/// How the next token is chosen on the device, by models::generate().
struct NextToken {
    /// From logits (N, vocab_size) to tokens (N), i64; below 0 where no token can be chosen. It may read logits on the
    /// host, if it is not capture_safe. Empty: as the other options say.
    std::function<Tensor(const Tensor& logits)> choose = nullptr;
    /// Whether it only enqueues, the same each time but for what tensors hold and generators draw: it becomes part of
    /// the captured step then (docs/capture.md).
    bool capture_safe = false;
};

/// The side of a row that holds the padding of a prompt.
enum class PromptPadding : std::uint8_t { right, left };

/// A token that was generated, for GenerationOptions::on_token.
struct GeneratedToken {
    std::size_t sequence = 0;                   ///< index of its sequence in the result of generate()
    std::int64_t token = 0;                     ///< the token
    std::span<const std::int64_t> tokens = {};  ///< all that were generated of the sequence, this one last
    /// The text that it adds, with GenerationOptions::decode: whole characters only, and nothing that may be the
    /// beginning of a stop string; the rest comes with a later token, the last one at the latest.
    std::string_view text = {};
};

/// Settings of text::generate(), models::generate() and Translator::translate(), by the names of Hugging Face's
/// GenerationConfig, and with its meaning.
struct GenerationOptions {
    std::int64_t max_new_tokens = 20;  ///< at least 0; at least 1 for models::generate() of a tensor
    std::int64_t min_new_tokens = 0;   ///< eos_token_id is not chosen before; at most max_new_tokens
    bool do_sample = false;            ///< draws; otherwise the most probable token is taken
    double temperature = 1;            ///< above 0: logits are divided by it
    /// Only the k most probable tokens, exactly k: of equal ones the lower ids; 0 for all.
    std::int64_t top_k = 0;
    /// Only the most probable tokens whose probabilities come to p together, in (0, 1]; of equal ones the lower ids
    /// first (A. Holtzman et al., The curious case of neural text degeneration, 2019).
    double top_p = 1;
    double min_p = 0;      ///< only tokens of at least this share of the largest probability
    double typical_p = 1;  ///< only the most typical tokens that come to p together (Meister et al. 2023)
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
    std::int64_t num_return_sequences = 1;  ///< of each prompt; at most num_beams, where there are beams without a draw
    std::uint64_t seed = 0;                 ///< of what is drawn: each sequence has a stream of its own

    std::vector<std::string> stop_strings = {};  ///< end a sequence when its generated text has one; needs decode
    /// Text of generated tokens, for stop_strings, GeneratedSequence::text and GeneratedToken::text, such as
    /// `[&](std::span<const std::int64_t> ids) { return tokenizer.decode(ids); }`.
    std::function<std::string(std::span<const std::int64_t> tokens)> decode = nullptr;
    /// Is called with each token as soon as it is chosen; false ends its sequence. Not for beams.
    std::function<bool(const GeneratedToken& token)> on_token = nullptr;
    /// Where a function of tensors gets its tokens; default_device() if none.
    std::optional<Device> device = std::nullopt;

    // Options of models::generate() alone.

    /// A choice on the device, in place of do_sample and what changes logits, such as models::sampling().
    NextToken next = {};
    /// (N), whole numbers from 1 to L (others stand for the nearest of these): tokens of each prompt of a tensor
    /// (N, L), where the others of a row are padding; all if none.
    Tensor lengths = {};
    PromptPadding padding = PromptPadding::right;  ///< the side of a row of `lengths` that holds the padding
    std::vector<std::int64_t> eos_token_ids = {};  ///< deprecated name of eos_token_id, to which it is added
    std::int64_t pad_token_id = 0;                 ///< fills rows of the result behind the end of a sequence
    bool use_cache = true;                         ///< false: each step computes the whole text again
    nn::KeyValueCacheOptions cache = {};           ///< f32 stands for the type of the model
    bool record = true;                            ///< steps of one token are captured and replayed
    /// Steps after which the host asks whether all sequences have ended, where nothing else needs the tokens there.
    std::int64_t eos_interval = 16;
};
/// @throws ValueError naming the option that is out of range
DECLIVITY_API void check(const GenerationOptions& options);
/// @throws ValueError naming the option with a token outside of a vocabulary
DECLIVITY_API void check_tokens(const GenerationOptions& options, std::int64_t vocab_size);

/// Changes logits as the options say, tokens that are ruled out to -infinity: penalties and bans, then, where do_sample
/// is true, temperature, top_k, top_p, min_p, typical_p.
/// @param logits of one position, one for each token of the vocabulary
/// @param tokens that stand before; @param prompt how many of them were given
/// @throws ValueError for a token that is not in the vocabulary, a NaN, and where no token is left
DECLIVITY_API void process_logits(std::span<float> logits, std::span<const std::int64_t> tokens, std::size_t prompt,
                                  const GenerationOptions& options);

/// The token of the largest logit, the first one of several. @throws ValueError for none, or NaN
DECLIVITY_API std::int64_t argmax(std::span<const float> logits);
/// Draws a token by softmax(logits). @throws ValueError where none has a probability, or for NaN
DECLIVITY_API std::int64_t sample(std::span<const float> logits, data::Random& random);
/// log(softmax(logits)), in double. @throws ValueError for NaN
DECLIVITY_API std::vector<double> log_softmax(std::span<const float> logits);

/// The reason why a sequence ended.
enum class FinishReason : std::uint8_t { length, eos_token, stop_sequence, stop_string, callback };

struct GeneratedSequence {
    std::vector<std::int64_t> tokens = {};  ///< those that were generated, without the prompt
    /// Sum of the log probabilities of the tokens, by the processed logits; of beams divided as length_penalty says.
    double score = 0;
    bool finished = false;                       ///< by an end token, a stop sequence or a stop string
    FinishReason reason = FinishReason::length;  ///< length stands for max_new_tokens
    /// With GenerationOptions::decode: the text of the tokens, up to the stop string that ended it.
    std::string text = {};
};

/// From sequences of tokens to the logits of what follows each: `logits[i]` of `sequences[i]`, one number for each
/// token of the vocabulary. It gets all tokens, the prompt too; a model with a cache keeps what it computed of a
/// beginning. `parents[i]` says from which sequence of the call before sequence i goes on (its cache is that of the
/// parent), and is i in the first call. Sequences of several prompts may differ in length.
struct GenerationStep {
    std::vector<std::vector<std::int64_t>> sequences;
    std::vector<std::int64_t> parents;
};
using NextLogits = std::function<std::vector<std::vector<float>>(const GenerationStep& step)>;
/// The same of one sequence.
using NextLogitsOfOne = std::function<std::vector<float>(std::span<const std::int64_t> tokens)>;
/// The same of tokens (N, L), i64, on GenerationOptions::device, all of one length: logits of each place, (N, L,
/// vocab_size), or of what follows the last one, (N, vocab_size). It is called without a graph.
using NextLogitsOfTensor = std::function<Tensor(const Tensor& tokens)>;

/// Generates tokens behind a prompt: greedily, by drawing (do_sample), by beam search (num_beams above 1) or by beams
/// that are drawn (both). What is drawn depends on the seed, the logits and the index of the sequence alone.
///
///     auto written = text::generate([&](const Tensor& tokens) { return model(tokens); }, tokenizer.ids("Once"),
///                                   {.max_new_tokens = 50, .do_sample = true, .top_p = 0.9});
///     std::cout << tokenizer.decode(written[0].tokens);
///
/// models::generate() takes the same options and gives the same sequences for models that keep a KV cache.
///
/// @returns num_return_sequences of them, of beams the best ones, best first
/// @throws ValueError for options out of range, tokens outside of the vocabulary, logits of another number than those
/// before, a NaN among the logits, and where no token is left to choose; whatever `next` and callbacks throw
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogits& next, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfTensor& next,
                                                      std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
/// The function of a module, in evaluation mode; its training mode is restored.
DECLIVITY_API std::vector<GeneratedSequence> generate(nn::Layer& model, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});

/// The same of several prompts, of any lengths, whose sequences are computed together.
/// @returns num_return_sequences for each prompt, one prompt after the other
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogits& next,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfTensor& next,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
DECLIVITY_API std::vector<GeneratedSequence> generate(nn::Layer& model,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});

}  // namespace declivity::text
