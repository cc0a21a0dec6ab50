// Layer 7. Text generation: choosing the next token from the logits of a model, step by step.
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

/// @addtogroup text
/// @{

/// Custom choice of the next token on the device, for models::generate().
struct NextToken {
    /// Maps logits (N, vocab_size) to tokens (N), i64; below 0 if no token can be chosen. It may read logits on the
    /// host if it is not capture_safe. If empty, the other options apply.
    std::function<Tensor(const Tensor& logits)> choose = nullptr;
    /// True if it only enqueues the same commands each time, except for tensor contents and random numbers of
    /// generators: it is then included in the captured step (docs/internals/capture.md).
    bool capture_safe = false;
};

/// The side on which a prompt is padded.
enum class PromptPadding : std::uint8_t { right, left };

/// A generated token, for GenerationOptions::on_token.
struct GeneratedToken {
    std::size_t sequence = 0;                   ///< index of its sequence in the result of generate()
    std::int64_t token = 0;                     ///< the token
    std::span<const std::int64_t> tokens = {};  ///< all generated tokens of the sequence, including this one
    /// The text that it adds, with GenerationOptions::decode: only complete characters, and no possible prefix of a
    /// stop string; the rest follows with a later token, at the latest with the last one.
    std::string_view text = {};
};

/// Options of text::generate(), models::generate() and Translator::translate(), with the names and semantics of Hugging
/// Face's GenerationConfig.
struct GenerationOptions {
    std::int64_t max_new_tokens = 20;  ///< at least 0; at least 1 for models::generate() of a tensor
    std::int64_t min_new_tokens = 0;   ///< suppresses eos_token_id before this number; at most max_new_tokens
    bool do_sample = false;            ///< samples; otherwise the most probable token is chosen (greedy)
    double temperature = 1;            ///< above 0: logits are divided by it
    /// Keeps exactly the k most probable tokens, with ties resolved to lower ids; 0 for all.
    std::int64_t top_k = 0;
    /// Nucleus sampling: keeps the most probable tokens with a total probability of p, in (0, 1], with ties resolved to
    /// lower ids (A. Holtzman et al., The curious case of neural text degeneration, 2019).
    double top_p = 1;
    double min_p = 0;      ///< keeps tokens of at least this fraction of the largest probability
    double typical_p = 1;  ///< keeps the most typical tokens with a total probability of p (Meister et al. 2023)
    /// Above 1: logits of tokens that occurred before are divided by it if positive and multiplied if negative (Keskar
    /// et al. 2019).
    double repetition_penalty = 1;
    /// Subtracted from the logits of generated tokens: presence_penalty once, frequency_penalty times their count
    /// (OpenAI's API).
    double presence_penalty = 0;
    double frequency_penalty = 0;
    std::int64_t no_repeat_ngram_size = 0;                       ///< no n-gram of this size occurs twice; 0 disables
    std::vector<std::int64_t> suppress_tokens = {};              ///< are never chosen
    std::vector<std::int64_t> eos_token_id = {};                 ///< end a sequence, and are its last token
    std::vector<std::vector<std::int64_t>> stop_sequences = {};  ///< end a sequence when they were generated
    std::int64_t num_beams = 1;
    double length_penalty = 1;  ///< beams are ranked by their log probability / number of tokens^length_penalty
    /// Ends beam search as soon as num_beams sequences are finished; otherwise when no better one is possible.
    bool early_stopping = false;
    std::int64_t num_return_sequences = 1;  ///< per prompt; at most num_beams for beam search without sampling
    std::uint64_t seed = 0;                 ///< of sampling: each sequence has an independent stream

    std::vector<std::string> stop_strings = {};  ///< end a sequence when its text contains one; requires decode
    /// Decodes generated tokens, for stop_strings, GeneratedSequence::text and GeneratedToken::text, such as
    /// `[&](std::span<const std::int64_t> ids) { return tokenizer.decode(ids); }`.
    std::function<std::string(std::span<const std::int64_t> tokens)> decode = nullptr;
    /// Streaming callback for each token as soon as it is chosen; false ends its sequence. Not for beam search.
    std::function<bool(const GeneratedToken& token)> on_token = nullptr;
    /// Device of the tokens passed to a function of tensors; default_device() if none.
    std::optional<Device> device = std::nullopt;

    // Options of models::generate() only.

    /// Custom choice on the device, such as models::sampling(); replaces do_sample and all options that change logits.
    NextToken next = {};
    /// (N), integers from 1 to L (clamped to this range): number of tokens of each prompt of a tensor (N, L), the rest
    /// of a row being padding; all if undefined.
    Tensor lengths = {};
    PromptPadding padding = PromptPadding::right;  ///< the side on which prompts with `lengths` are padded
    std::vector<std::int64_t> eos_token_ids = {};  ///< deprecated name of eos_token_id, to which it is added
    std::int64_t pad_token_id = 0;                 ///< fills rows of the result after the end of a sequence
    bool use_cache = true;                         ///< false: each step recomputes the whole sequence
    nn::KeyValueCacheOptions cache = {};           ///< type of the cache; f32 stands for that of the model
    bool capture = true;                           ///< captures and replays steps of one token
    std::optional<bool> record = {};               ///< deprecated name of capture, which it overrides if set
    /// Interval of steps in which the host checks whether all sequences have ended, unless it reads tokens in each
    /// step.
    std::int64_t eos_interval = 16;
};
/// @throws ValueError naming the option that is out of range
DECLIVITY_API void check(const GenerationOptions& options);
/// @throws ValueError naming the option with a token outside of the vocabulary
DECLIVITY_API void check_tokens(const GenerationOptions& options, std::int64_t vocab_size);

/// Applies the options to logits, setting excluded tokens to -infinity: penalties and bans, then, if do_sample is true,
/// temperature, top_k, top_p, min_p, typical_p.
/// @param logits of one position, one for each token of the vocabulary
/// @param tokens all previous tokens
/// @param prompt number of them that belong to the prompt
/// @throws ValueError for a token that is not in the vocabulary, a NaN, and if no token is left
DECLIVITY_API void process_logits(std::span<float> logits, std::span<const std::int64_t> tokens, std::size_t prompt,
                                  const GenerationOptions& options);

/// The token of the largest logit, the first one of several. @throws ValueError for no logits, or NaN
DECLIVITY_API std::int64_t argmax(std::span<const float> logits);
/// Samples a token from softmax(logits). @throws ValueError if none has a positive probability, or for NaN
DECLIVITY_API std::int64_t sample(std::span<const float> logits, data::Random& random);
/// log(softmax(logits)), in double. @throws ValueError for NaN
DECLIVITY_API std::vector<double> log_softmax(std::span<const float> logits);

/// Reason why a sequence ended.
enum class FinishReason : std::uint8_t { length, eos_token, stop_sequence, stop_string, callback };

struct GeneratedSequence {
    std::vector<std::int64_t> tokens = {};  ///< generated tokens, without the prompt
    /// Sum of the log probabilities of the tokens under the processed logits; for beams normalised by length_penalty.
    double score = 0;
    bool finished = false;                       ///< ended by an end token, a stop sequence or a stop string
    FinishReason reason = FinishReason::length;  ///< length stands for max_new_tokens
    /// With GenerationOptions::decode: the text of the tokens, up to the stop string that ended it.
    std::string text = {};
};

/// Maps token sequences to the logits of their next tokens: `logits[i]` for `sequences[i]`, one number for each token
/// of the vocabulary. It receives all tokens, including the prompt; a model with a KV cache reuses the prefix.
/// `parents[i]` is the index of the sequence of the previous call that sequence i continues (whose cache it takes
/// over), and is i in the first call. Sequences of several prompts may differ in length.
struct GenerationStep {
    std::vector<std::vector<std::int64_t>> sequences;
    std::vector<std::int64_t> parents;
};
using NextLogits = std::function<std::vector<std::vector<float>>(const GenerationStep& step)>;
/// NextLogits for one sequence.
using NextLogitsOfOne = std::function<std::vector<float>(std::span<const std::int64_t> tokens)>;
/// NextLogits with tokens (N, L), i64, on GenerationOptions::device, of equal length: returns logits of each
/// position, (N, L, vocab_size), or of the next token only, (N, vocab_size). Called without grad mode.
using NextLogitsOfTensor = std::function<Tensor(const Tensor& tokens)>;

/// Generates tokens after a prompt: by greedy decoding, sampling (do_sample), beam search (num_beams above 1) or beam
/// sampling (both). Samples depend only on the seed, the logits and the index of the sequence.
///
///     auto written = text::generate([&](const Tensor& tokens) { return model(tokens); }, tokenizer.ids("Once"),
///                                   {.max_new_tokens = 50, .do_sample = true, .top_p = 0.9});
///     std::cout << tokenizer.decode(written[0].tokens);
///
/// models::generate() takes the same options and returns the same sequences for models with a KV cache.
///
/// @returns num_return_sequences sequences; for beams the best ones in descending order
/// @throws ValueError for options out of range, tokens outside of the vocabulary, a changed number of logits, a NaN
/// among the logits, and if no token is left to choose; any exception of `next` and callbacks
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogits& next, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
/// Overload for logits of one sequence.
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
/// Overload for logits as a tensor.
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfTensor& next,
                                                      std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});
/// Uses a module in evaluation mode; its training mode is restored.
DECLIVITY_API std::vector<GeneratedSequence> generate(nn::Layer& model, std::span<const std::int64_t> prompt,
                                                      const GenerationOptions& options = {});

/// Overload for several prompts of any lengths, whose sequences are computed as a batch.
/// @returns num_return_sequences for each prompt, one prompt after the other
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogits& next,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
/// Overload for logits of one sequence and several prompts.
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
/// Overload for logits as a tensor and several prompts.
DECLIVITY_API std::vector<GeneratedSequence> generate(const NextLogitsOfTensor& next,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});
/// Overload for a module and several prompts.
DECLIVITY_API std::vector<GeneratedSequence> generate(nn::Layer& model,
                                                      const std::vector<std::vector<std::int64_t>>& prompts,
                                                      const GenerationOptions& options = {});

/// @}

}  // namespace declivity::text
