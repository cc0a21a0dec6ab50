#include <declivity/models/generate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "cached_logits.hpp"
#include "nn/evaluation_mode.hpp"

namespace declivity::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns whether a row of scores has a token that can be selected: its maximum is above -infinity. A NaN among the
/// scores is the maximum, and fails the comparison.
Tensor can_choose(const Tensor& largest) { return largest > -kInfinity; }

using Prompts = std::vector<std::vector<std::int64_t>>;

struct PromptRows {
    Tensor tokens, lengths;  ///< (N, L) right-padded, i64; (N), i64
    bool ragged;
};

PromptRows prompts_of(const Tensor& prompts, const GenerationOptions& options) {
    if (prompts.rank() != 2 || prompts.size(0) < 1 || prompts.size(1) < 1)
        throw ShapeError(fmt::format("generate: expected prompts of shape (N, L) of at least one token, got {}",
                                     prompts.shape().str()));
    if (prompts.dtype() != DType::i64 && prompts.dtype() != DType::i32)
        throw TypeError(fmt::format("generate: expected prompts of i64 or i32, got {}", name_of(prompts.dtype())));
    const std::int64_t texts = prompts.size(0), length = prompts.size(1);
    const Tensor tokens = prompts.to(DType::i64);
    if (!options.lengths.defined()) return {tokens, full({texts}, length, {DType::i64, prompts.device()}), false};
    ops::require_shape("generate", "lengths", options.lengths.shape(), {texts});
    const Tensor lengths = clamp(options.lengths.to(DType::i64), 1, length);
    if (options.padding == PromptPadding::right) return {tokens, lengths, true};
    const Tensor source = arange(0, length, 1, {DType::i64, prompts.device()}) + unsqueeze(length - lengths, 1);
    return {gather(tokens, 1, clamp(source, 0, length - 1)), lengths, true};
}

/// Returns whether a token is an end token.
Tensor is_end_token(const Tensor& tokens, const std::vector<std::int64_t>& ids) {
    Tensor result = tokens == ids.at(0);
    for (std::size_t i = 1; i < ids.size(); ++i) result = result | (tokens == ids[i]);
    return result;
}

/// Appends the first `count` of the new tokens (N, M) to the prompts, padded to (N, L + M).
Tensor append_tokens(const PromptRows& prompts, const Tensor& new_tokens, const Tensor& count, std::int64_t pad) {
    const std::int64_t texts = prompts.tokens.size(0), length = prompts.tokens.size(1),
                       max_new_tokens = new_tokens.size(1);
    const TensorOptions index_options{DType::i64, new_tokens.device()};
    const Tensor position = reshape(arange(0, length + max_new_tokens, 1, index_options), {1, length + max_new_tokens}),
                 lengths = unsqueeze(prompts.lengths, 1), offset = position - lengths;
    const auto gather_at = [&](const Tensor& from, const Tensor& index) {
        return gather(from, 1, broadcast_to(clamp(index, 0, from.size(1) - 1), {texts, length + max_new_tokens}));
    };
    return where(offset < 0, gather_at(prompts.tokens, position),
                 where(offset < unsqueeze(count, 1), gather_at(new_tokens, offset), pad));
}

void require_length(const CausalLM& model, std::int64_t longest, const GenerationOptions& options) {
    if (longest + options.max_new_tokens > model.max_positions())
        throw ValueError(fmt::format("generate: expected texts of up to {} tokens, got prompts of {} and {} new ones",
                                     model.max_positions(), longest, options.max_new_tokens));
}

/// The option that is not supported by device-side sampling; null if there is none.
const char* host_option(const GenerationOptions& options) {
    if (options.do_sample) return "do_sample";
    if (options.num_beams > 1) return "num_beams";
    if (options.num_return_sequences > 1) return "num_return_sequences";
    if (options.min_new_tokens > 0 && !(options.eos_token_id.empty() && options.eos_token_ids.empty()))
        return "min_new_tokens";
    if (options.repetition_penalty != 1) return "repetition_penalty";
    if (options.presence_penalty != 0) return "presence_penalty";
    if (options.frequency_penalty != 0) return "frequency_penalty";
    if (options.no_repeat_ngram_size > 0) return "no_repeat_ngram_size";
    if (!options.suppress_tokens.empty()) return "suppress_tokens";
    if (!options.stop_sequences.empty()) return "stop_sequences";
    if (!options.stop_strings.empty()) return "stop_strings";
    if (options.on_token) return "on_token";
    return nullptr;
}

std::vector<GeneratedSequence> generate_lists(CausalLM& model, const Prompts& prompts,
                                              const GenerationOptions& options) {
    std::size_t longest = 0;
    for (const auto& prompt : prompts) {
        if (prompt.empty()) throw ValueError("generate: expected prompts of at least one token, got an empty one");
        for (const std::int64_t token : prompt)
            if (token < 0 || token >= model.vocab_size())
                throw ValueError(fmt::format("generate: expected tokens of prompts in 0 .. {}, got {}",
                                             model.vocab_size() - 1, token));
        longest = std::max(longest, prompt.size());
    }
    require_length(model, static_cast<std::int64_t>(longest), options);
    if (prompts.empty() || options.max_new_tokens == 0)
        return text::generate([](const text::GenerationStep&) { return std::vector<std::vector<float>>(); }, prompts,
                              options);
    const NoGrad no_grad;
    const nn::EvaluationMode evaluation(model);
    if (!options.use_cache) {
        GenerationOptions device_options = options;
        device_options.device = device_of(model);
        const text::NextLogitsOfTensor next_logits = [&](const Tensor& tokens) {
            const Tensor hidden = model.hidden_states(tokens, {});
            return model.logits(select(hidden, 1, hidden.size(1) - 1));
        };
        return text::generate(next_logits, prompts, device_options);
    }
    // Beam search processes one prompt after the other.
    const std::int64_t texts = options.num_beams > 1
                                   ? options.num_beams
                                   : options.num_return_sequences * static_cast<std::int64_t>(prompts.size());
    CachedLogits logits(model, texts, static_cast<std::int64_t>(longest) + options.max_new_tokens, options);
    const text::NextLogits next_logits = [&](const text::GenerationStep& step) { return logits(step); };
    return text::generate(next_logits, prompts, options);
}

/// Generates from a tensor of prompts converted to lists, and returns the result as a tensor.
Generated generate_rows(CausalLM& model, const PromptRows& prompt_rows, const GenerationOptions& options) {
    const std::vector<std::int64_t> tokens = prompt_rows.tokens.to_vector<std::int64_t>(),
                                    lengths = prompt_rows.lengths.to_vector<std::int64_t>();
    const std::int64_t width = prompt_rows.tokens.size(1), total_length = width + options.max_new_tokens;
    Prompts prompts;
    for (std::size_t row = 0; row < lengths.size(); ++row) {
        const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(row) * width;
        prompts.emplace_back(begin, begin + lengths[row]);
    }
    GenerationOptions list_options = options;
    list_options.lengths = {};
    const std::vector<GeneratedSequence> sequences = generate_lists(model, prompts, list_options);
    const auto per_prompt = static_cast<std::size_t>(options.num_return_sequences);
    std::vector<std::int64_t> rows, counts;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        std::vector<std::int64_t> row = prompts[i / per_prompt];
        row.insert(row.end(), sequences[i].tokens.begin(), sequences[i].tokens.end());
        counts.push_back(static_cast<std::int64_t>(row.size()));
        row.resize(static_cast<std::size_t>(total_length), options.pad_token_id);
        rows.insert(rows.end(), row.begin(), row.end());
    }
    const auto texts = static_cast<std::int64_t>(sequences.size());
    const Device device = prompt_rows.tokens.device();
    return {Tensor::from(rows, {texts, total_length}, device), Tensor::from(counts, {texts}, device)};
}

/// Consecutive calls of the model, each returning the next tokens (N).
class StepRunner {
  public:
    StepRunner(CausalLM& model, const PromptRows& prompts, const GenerationOptions& options)
        : model_(model),
          prompts_(prompts),
          options_(options),
          next_(options.next.choose ? options.next : greedy()),
          step_([this](const std::vector<Tensor>& inputs) { return std::vector{step(inputs.at(0))}; },
                {.when_refused = WhenRefused::run}) {
        if (!options.use_cache) return;
        cache_ = cache_for(model, prompts.tokens.size(0), prompts.tokens.size(1) + options.max_new_tokens, options);
    }

    Tensor first() {
        // Read before the model enqueues work that would delay it.
        const std::vector<std::int64_t> tokens = prompts_.tokens.to_vector<std::int64_t>();
        const Tensor hidden = model_.hidden_states(prompts_.tokens, {.cache = cache_});
        if (cache_.defined() && prompts_.ragged) cache_.set_lengths(prompts_.lengths);
        const Tensor scores = model_.logits(gather_last(hidden, prompts_.lengths, 0));
        for (const std::int64_t token : tokens)
            if (token < 0 || token >= scores.size(1))
                throw ValueError(
                    fmt::format("generate: expected tokens of prompts in 0 .. {}, got {}", scores.size(1) - 1, token));
        return choose_next(scores);
    }
    /// @param last_tokens tokens selected last
    /// @param new_tokens all of them so far, `count` of them
    Tensor next(const Tensor& last_tokens, const Tensor& new_tokens, std::int64_t count) {
        if (!options_.use_cache) {
            const Tensor counts = full({last_tokens.size(0)}, count, {DType::i64, last_tokens.device()});
            const Tensor text = maximum(append_tokens(prompts_, slice(new_tokens, 1, 0, count), counts, 0),
                                        zeros({}, {DType::i64, last_tokens.device()}));
            return choose_next(model_.logits(gather_last(model_.hidden_states(text, {}), prompts_.lengths, count)));
        }
        const Tensor output = options_.record.value_or(options_.capture) ? step_({last_tokens})[0] : step(last_tokens);
        return next_.capture_safe ? output : choose_next(output);
    }

  private:
    Tensor step(const Tensor& last_tokens) {
        const std::int64_t texts = last_tokens.size(0);
        // If no token can be selected any id is used: the text is rejected at the end.
        const Tensor input_ids = maximum(last_tokens, zeros({}, {DType::i64, last_tokens.device()}));
        const Tensor hidden = model_.hidden_states(reshape(input_ids, {texts, 1}), {.cache = cache_});
        const Tensor scores = model_.logits(reshape(hidden, {texts, hidden.size(2)}));
        return next_.capture_safe ? choose_next(scores) : scores;
    }
    Tensor choose_next(const Tensor& scores) {
        const Tensor tokens = next_.choose(scores);
        ops::require_shape("generate", "chosen tokens", tokens.shape(), {scores.size(0)});
        if (tokens.dtype() != DType::i64)
            throw TypeError(fmt::format("generate: expected chosen tokens of i64, got {}", name_of(tokens.dtype())));
        return tokens;
    }

    CausalLM& model_;
    const PromptRows& prompts_;
    const GenerationOptions& options_;
    NextToken next_;
    nn::KeyValueCache cache_;
    CapturedStep step_;
};

}  // namespace

NextToken greedy() {
    return {[](const Tensor& scores) { return where(can_choose(amax(scores, {-1})), argmax(scores, -1), -1); }, true};
}

NextToken sampling(const SamplingOptions& options) {
    if (!(options.temperature > 0 && options.temperature < kInfinity))
        throw ValueError(fmt::format("sampling: expected a finite temperature above 0, got {}", options.temperature));
    if (options.top_k && *options.top_k < 1)
        throw ValueError(fmt::format("sampling: expected top_k of at least 1, got {}", *options.top_k));
    if (options.top_p && !(*options.top_p > 0 && *options.top_p <= 1))
        throw ValueError(fmt::format("sampling: expected top_p in (0, 1], got {}", *options.top_p));
    if (options.min_p && !(*options.min_p >= 0 && *options.min_p <= 1))
        throw ValueError(fmt::format("sampling: expected min_p in [0, 1], got {}", *options.min_p));
    // Within the range of float, also on devices without subnormal numbers.
    const double inverse_temperature = std::clamp(1 / options.temperature, 1e-30, 1e38);
    return {[options, inverse_temperature](const Tensor& scores) {
                const Tensor logits = scores.to(compute_type(scores.dtype())), largest = amax(logits, {-1}, true);
                // Differences to the maximum stay in range at any temperature; infinite scores are tied.
                Tensor filtered = where(largest == kInfinity, where(logits == kInfinity, 0.0, -kInfinity),
                                        (logits - largest) * inverse_temperature);
                Tensor ids;
                const std::int64_t size = logits.size(-1), k = std::min(options.top_k.value_or(size), size);
                if (k < size || options.top_p.value_or(1) < 1) {
                    // Sorted in descending order, ties by lower id: exactly that many remain.
                    const TopK top = topk(filtered, k);
                    filtered = top.values;
                    ids = top.indices;
                }
                if (options.top_p.value_or(1) < 1) {
                    // Keeps tokens whose preceding cumulative probability is below top_p; always the first.
                    const Tensor probabilities = softmax(filtered, -1);
                    filtered = where(cumsum(probabilities, -1) - probabilities < *options.top_p, filtered, -kInfinity);
                }
                if (options.min_p.value_or(0) > 0)
                    filtered = where(filtered < std::log(*options.min_p), -kInfinity, filtered);
                Tensor tokens = categorical(filtered, -1, options.generator);
                if (ids.defined()) tokens = reshape(gather(ids, -1, unsqueeze(tokens, -1)), tokens.shape());
                return where(can_choose(reshape(largest, tokens.shape())), tokens, -1);
            },
            true};
}

Generated generate(CausalLM& model, const Tensor& prompts, const GenerationOptions& options) {
    const NoGrad no_grad;
    const PromptRows prompt_rows = prompts_of(prompts, options);
    check(options);
    check_tokens(options, model.vocab_size());
    if (options.max_new_tokens < 1)
        throw ValueError(
            fmt::format("generate: expected max_new_tokens of at least 1, got {}", options.max_new_tokens));
    require_length(model, prompts.size(1), options);
    if (const char* unsupported = host_option(options); unsupported != nullptr) {
        if (options.next.choose)
            throw ValueError(
                fmt::format("generate: expected no {} with `next`, which replaces the sampling options", unsupported));
        return generate_rows(model, prompt_rows, options);
    }
    std::vector<std::int64_t> eos_ids = options.eos_token_id;
    eos_ids.insert(eos_ids.end(), options.eos_token_ids.begin(), options.eos_token_ids.end());
    const nn::EvaluationMode evaluation(model);
    const std::int64_t texts = prompts.size(0), max_new_tokens = options.max_new_tokens;
    const TensorOptions index_options{DType::i64, prompts.device()};
    Tensor new_tokens = full({texts, max_new_tokens}, options.pad_token_id, index_options).clone();
    StepRunner runner(model, prompt_rows, options);
    Tensor tokens;
    std::int64_t count = 0;
    while (count < max_new_tokens) {
        tokens = count == 0 ? runner.first() : runner.next(tokens, new_tokens, count);
        new_tokens[{Slice(), count}] = tokens;
        ++count;
        if (!eos_ids.empty() && count % options.eos_interval == 0 &&
            all(any(is_end_token(slice(new_tokens, 1, 0, count), eos_ids), {1})).item<bool>())
            break;
    }
    Tensor counts = full({texts}, max_new_tokens, index_options);
    if (!eos_ids.empty()) {
        const Tensor ended_count = cumsum(is_end_token(new_tokens, eos_ids).to(DType::i64), 1);
        // Up to and including the first end token.
        counts = minimum(sum((ended_count == 0).to(DType::i64), {1}) + 1, max_new_tokens);
    }
    // Tokens after the end of a text are ignored.
    const Tensor position = reshape(arange(0, max_new_tokens, 1, index_options), {1, max_new_tokens});
    const Tensor invalid = any((new_tokens < 0) & (position < unsqueeze(counts, 1)) & (position < count), {1});
    const std::vector<std::int64_t> is_invalid = invalid.to(DType::i64).to_vector<std::int64_t>();
    if (const auto first_invalid = std::ranges::find(is_invalid, 1); first_invalid != is_invalid.end())
        throw ValueError(
            fmt::format("generate: expected scores with a maximum, got NaN or none above -infinity in "
                        "text {}",
                        first_invalid - is_invalid.begin()));
    return {append_tokens(prompt_rows, new_tokens, counts, options.pad_token_id), prompt_rows.lengths + counts};
}

std::vector<GeneratedSequence> generate(CausalLM& model, const std::vector<std::vector<std::int64_t>>& prompts,
                                        const GenerationOptions& options) {
    check(options);
    check_tokens(options, model.vocab_size());
    return generate_lists(model, prompts, options);
}

std::vector<GeneratedSequence> generate(CausalLM& model, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    return generate(model, Prompts{std::vector<std::int64_t>(prompt.begin(), prompt.end())}, options);
}

}  // namespace declivity::models
