#include <declivity/text/generation.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/module.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "nn/evaluation_mode.hpp"
#include "text_stream.hpp"

namespace declivity::text {
namespace {

using Prompts = std::vector<std::vector<std::int64_t>>;

bool ends_with(std::span<const std::int64_t> tokens, std::span<const std::int64_t> suffix) {
    return tokens.size() >= suffix.size() && std::ranges::equal(tokens.last(suffix.size()), suffix);
}

bool contains(const std::vector<std::int64_t>& tokens, std::int64_t token) {
    return std::ranges::find(tokens, token) != tokens.end();
}

/// Finish reason of the generated tokens; `length` if they are not finished.
FinishReason finish_reason(std::span<const std::int64_t> generated, const GenerationOptions& options) {
    if (generated.empty()) return FinishReason::length;
    if (contains(options.eos_token_id, generated.back())) return FinishReason::eos_token;
    if (std::ranges::any_of(options.stop_sequences, [&](const auto& stop) { return ends_with(generated, stop); }))
        return FinishReason::stop_sequence;
    return FinishReason::length;
}

/// The same, including stop strings.
FinishReason finish_reason(std::span<const std::int64_t> generated, TextStream& text,
                           const GenerationOptions& options) {
    // Without stop strings and a callback the text is decoded once, at the end.
    const bool hit_stop_string = (!options.stop_strings.empty() || options.on_token) && text.update(generated);
    const FinishReason token_reason = finish_reason(generated, options);
    return token_reason == FinishReason::length && hit_stop_string ? FinishReason::stop_string : token_reason;
}

/// An unfinished sequence.
struct Beam {
    std::vector<std::int64_t> tokens;  ///< including the prompt
    double score = 0;
    std::int64_t parent = 0;
    std::size_t prompt = 0;  ///< tokens after the prompt
    [[nodiscard]] std::span<const std::int64_t> generated() const { return std::span(tokens).subspan(prompt); }
};

Beam start_beam(const std::vector<std::int64_t>& prompt, std::int64_t parent) {
    return {prompt, 0, parent, prompt.size()};
}

/// Calls the model, and checks its results.
class CheckedModel {
  public:
    CheckedModel(const NextLogits& next, const GenerationOptions& options) : next_(next), options_(options) {}

    /// Processed logits of the token after each sequence.
    std::vector<std::vector<float>> operator()(const std::vector<Beam>& beams) {
        GenerationStep step;
        for (const Beam& beam : beams) {
            step.sequences.push_back(beam.tokens);
            step.parents.push_back(beam.parent);
        }
        std::vector<std::vector<float>> logits = next_(step);
        if (logits.size() != beams.size())
            throw ValueError(
                fmt::format("generate: expected logits for {} sequences, got {}", beams.size(), logits.size()));
        for (std::size_t i = 0; i < beams.size(); ++i) {
            if (size_ == 0) {
                size_ = logits[i].size();
                check_tokens(options_, static_cast<std::int64_t>(size_));
            }
            if (logits[i].size() != size_ || size_ == 0)
                throw ValueError(fmt::format("generate: expected {} logits, got {}", std::max<std::size_t>(size_, 1),
                                             logits[i].size()));
            process_logits(logits[i], beams[i].tokens, beams[i].prompt, options_);
        }
        return logits;
    }

  private:
    const NextLogits& next_;
    const GenerationOptions& options_;
    std::size_t size_ = 0;
};

GeneratedSequence to_sequence(const Beam& beam, FinishReason reason, TextStream& text) {
    GeneratedSequence out;
    const std::span<const std::int64_t> generated = beam.generated();
    (void)text.update(generated);
    out.tokens.assign(generated.begin(), generated.end());
    out.reason = reason;
    out.finished = reason != FinishReason::length && reason != FinishReason::callback;
    out.score = beam.score;
    out.text = text.str();
    return out;
}

std::vector<GeneratedSequence> greedy_or_sampled(CheckedModel& model, const Prompts& prompts,
                                                 const GenerationOptions& options) {
    const auto per_prompt = static_cast<std::size_t>(options.num_return_sequences);
    struct Running {
        Beam beam;
        std::size_t index;  // decoded text of the result
        TextStream text;
        data::Random random;
    };
    std::vector<Running> running;
    for (std::size_t i = 0; i < prompts.size() * per_prompt; ++i)
        running.push_back({start_beam(prompts[i / per_prompt], static_cast<std::int64_t>(i)), i, TextStream(options),
                           data::Random(options.seed, 0, i, data::Purpose::draw)});
    std::vector<GeneratedSequence> out(running.size());
    for (std::int64_t step = 0; step < options.max_new_tokens && !running.empty(); ++step) {
        std::vector<Beam> beams;
        for (const Running& item : running) beams.push_back(item.beam);
        const std::vector<std::vector<float>> logits = model(beams);
        std::vector<Running> next;
        for (std::size_t i = 0; i < running.size(); ++i) {
            Running& sequence = running[i];
            const std::int64_t token = options.do_sample ? sample(logits[i], sequence.random) : argmax(logits[i]);
            sequence.beam.score += log_softmax(logits[i])[static_cast<std::size_t>(token)];
            sequence.beam.tokens.push_back(token);
            sequence.beam.parent = static_cast<std::int64_t>(i);
            FinishReason reason = finish_reason(sequence.beam.generated(), sequence.text, options);
            bool continues = reason == FinishReason::length && step + 1 < options.max_new_tokens;
            if (options.on_token &&
                !options.on_token({sequence.index, token, sequence.beam.generated(), sequence.text.take(!continues)}) &&
                reason == FinishReason::length) {
                reason = FinishReason::callback;
                continues = false;
            }
            if (continues) next.push_back(std::move(sequence));
            else out[sequence.index] = to_sequence(sequence.beam, reason, sequence.text);
        }
        running = std::move(next);
    }
    for (Running& item : running) out[item.index] = to_sequence(item.beam, FinishReason::length, item.text);
    return out;
}

/// The best finished sequences.
class FinishedBeams {
  public:
    explicit FinishedBeams(const GenerationOptions& options) : options_(options) {}

    /// Score normalised for ranking, for so many generated tokens.
    [[nodiscard]] double normalized_score(double score, std::size_t generated) const {
        return score / std::pow(static_cast<double>(std::max<std::size_t>(generated, 1)), options_.length_penalty);
    }
    void add(const Beam& beam) {
        TextStream text(options_);
        const FinishReason reason = finish_reason(beam.generated(), text, options_);
        GeneratedSequence sequence = to_sequence(beam, reason, text);
        sequence.score = normalized_score(beam.score, sequence.tokens.size());
        const auto position =
            std::ranges::upper_bound(sequences_, sequence.score, std::greater<>(), &GeneratedSequence::score);
        sequences_.insert(position, std::move(sequence));
        if (sequences_.size() > static_cast<std::size_t>(options_.num_beams)) sequences_.pop_back();
    }
    /// Returns whether no beam with this score, after so many generated tokens, can still exceed the finished ones.
    [[nodiscard]] bool is_done(double best, std::size_t generated) const {
        if (sequences_.size() < static_cast<std::size_t>(options_.num_beams)) return false;
        return options_.early_stopping || sequences_.back().score >= normalized_score(best, generated);
    }
    std::vector<GeneratedSequence> best(std::size_t count) && {
        if (sequences_.size() > count) sequences_.resize(count);
        return std::move(sequences_);
    }

  private:
    const GenerationOptions& options_;
    std::vector<GeneratedSequence> sequences_;
};

/// @param index of the prompt
std::vector<GeneratedSequence> beam_search(CheckedModel& model, const std::vector<std::int64_t>& prompt,
                                           std::size_t index, const GenerationOptions& options) {
    const auto width = static_cast<std::size_t>(options.num_beams);
    std::vector<Beam> running{start_beam(prompt, 0)};
    FinishedBeams finished(options);
    data::Random random(options.seed, 0, index, data::Purpose::draw);
    struct Candidate {
        double score = 0;  // of the sequence
        double order = 0;  // used for the selection
        std::size_t beam = 0;
        std::int64_t token = 0;
    };
    for (std::int64_t step = 0; step < options.max_new_tokens && !running.empty(); ++step) {
        const std::vector<std::vector<float>> logits = model(running);
        std::vector<Candidate> candidates;
        for (std::size_t beam = 0; beam < running.size(); ++beam) {
            const std::vector<double> log_p = log_softmax(logits[beam]);
            for (std::size_t token = 0; token < log_p.size(); ++token)
                if (std::isfinite(log_p[token]))
                    candidates.push_back(
                        {running[beam].score + log_p[token], 0, beam, static_cast<std::int64_t>(token)});
        }
        for (Candidate& candidate : candidates) {
            candidate.order = candidate.score;
            // The largest log probabilities plus Gumbel noise are a sample without replacement (Kool et al. 2019).
            if (options.do_sample)
                candidate.order -= std::log(-std::log((static_cast<double>(random.word()) + 0.5) * 0x1p-32));
        }
        // Twice as many candidates as beams, so that enough remain if some end; and one more for each further end
        // token.
        const std::size_t candidate_count =
            std::min(candidates.size(), (1 + std::max<std::size_t>(options.eos_token_id.size(), 1)) * width);
        std::ranges::partial_sort(
            candidates, candidates.begin() + static_cast<std::ptrdiff_t>(candidate_count),
            [](const Candidate& a, const Candidate& b) {
                return a.order != b.order ? a.order > b.order : std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
            });
        candidates.resize(candidate_count);
        if (options.do_sample) std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::score);
        std::vector<Beam> next;
        for (std::size_t rank = 0; rank < candidates.size() && next.size() < width; ++rank) {
            const Candidate& candidate = candidates[rank];
            Beam beam{running[candidate.beam].tokens, candidate.score, static_cast<std::int64_t>(candidate.beam),
                      prompt.size()};
            beam.tokens.push_back(candidate.token);
            TextStream text(options);
            const bool is_finished = options.stop_strings.empty()
                                         ? finish_reason(beam.generated(), options) != FinishReason::length
                                         : finish_reason(beam.generated(), text, options) != FinishReason::length;
            if (!is_finished) next.push_back(std::move(beam));
            // Ended candidates outside of the top are dropped, like others would be.
            else if (rank < width) finished.add(beam);
        }
        running = std::move(next);
        if (!running.empty() && finished.is_done(running[0].score, running[0].tokens.size() - prompt.size())) {
            running.clear();
            break;
        }
    }
    for (const Beam& beam : running) finished.add(beam);
    return std::move(finished).best(static_cast<std::size_t>(options.num_return_sequences));
}

/// Tensor of sequences of one length, and the logits of the token after each.
class TensorLogits {
  public:
    TensorLogits(const NextLogitsOfTensor& next, const GenerationOptions& options)
        : next_(next), device_(options.device) {}

    std::vector<std::vector<float>> operator()(const GenerationStep& step) const {
        const NoGrad no_grad;
        std::vector<std::vector<float>> out(step.sequences.size());
        // Rows of one length need no padding, so the function need not support it.
        for (std::size_t first = 0; first < out.size(); ++first) {
            if (!out[first].empty()) continue;
            const std::size_t length = step.sequences[first].size();
            if (length == 0) throw ValueError("generate: expected a prompt of at least one token, got none");
            std::vector<std::size_t> rows;
            std::vector<std::int64_t> tokens;
            for (std::size_t i = first; i < out.size(); ++i)
                if (step.sequences[i].size() == length) {
                    rows.push_back(i);
                    tokens.insert(tokens.end(), step.sequences[i].begin(), step.sequences[i].end());
                }
            const auto texts = static_cast<std::int64_t>(rows.size()), positions = static_cast<std::int64_t>(length);
            Tensor logits = next_(Tensor::from(tokens, {texts, positions}, device_));
            if (!logits.defined()) throw ValueError("generate: expected logits, got an undefined tensor");
            const bool per_position = logits.rank() == 3 && logits.size(1) == positions;
            if ((!per_position && logits.rank() != 2) || logits.size(0) != texts || logits.size(-1) < 1)
                throw ShapeError(fmt::format(
                    "generate: expected logits of shape ({0}, {1}, vocab_size) or ({0}, vocab_size), got {2}", texts,
                    positions, logits.shape().str()));
            if (per_position) logits = select(logits, 1, positions - 1);
            const auto size = static_cast<std::size_t>(logits.size(1));
            const std::vector<float> values = logits.to(DType::f32).to_vector<float>();
            for (std::size_t i = 0; i < rows.size(); ++i)
                out[rows[i]].assign(values.begin() + static_cast<std::ptrdiff_t>(i * size),
                                    values.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
        }
        return out;
    }

  private:
    const NextLogitsOfTensor& next_;
    std::optional<Device> device_;
};

template <class Next>
void require_function(const Next& next) {
    if (!next) throw ValueError("generate: expected a function that returns logits, got an empty one");
}

/// Rejects the options that only models::generate() supports.
void require_host_options(const GenerationOptions& options) {
    if (options.next.choose)
        throw ValueError("generate: expected no `next` with a function of logits; only models::generate() supports it");
    if (options.lengths.defined())
        throw ValueError("generate: expected no `lengths` with prompts that are lists, which have their own");
}

Prompts single_prompt(std::span<const std::int64_t> prompt) {
    return {std::vector<std::int64_t>(prompt.begin(), prompt.end())};
}

}  // namespace

void check_tokens(const GenerationOptions& options, std::int64_t vocab_size) {
    const auto require = [&](const char* name, const std::vector<std::int64_t>& tokens) {
        for (const std::int64_t token : tokens)
            if (token < 0 || token >= vocab_size)
                throw ValueError(fmt::format("GenerationOptions: expected {} in 0 .. {}, the vocabulary, got {}", name,
                                             vocab_size - 1, token));
    };
    require("eos_token_id", options.eos_token_id);
    require("eos_token_ids", options.eos_token_ids);
    require("suppress_tokens", options.suppress_tokens);
    for (const auto& stop : options.stop_sequences) require("stop_sequences", stop);
}

std::vector<GeneratedSequence> generate(const NextLogits& next, const Prompts& prompts,
                                        const GenerationOptions& user_options) {
    check(user_options);
    require_function(next);
    require_host_options(user_options);
    GenerationOptions options = user_options;
    options.eos_token_id.insert(options.eos_token_id.end(), user_options.eos_token_ids.begin(),
                                user_options.eos_token_ids.end());
    options.eos_token_ids.clear();
    if (options.num_beams == 1) {
        CheckedModel model(next, options);
        return greedy_or_sampled(model, prompts, options);
    }
    std::vector<GeneratedSequence> out;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        CheckedModel model(next, options);
        for (GeneratedSequence& beam : beam_search(model, prompts[i], i, options)) out.push_back(std::move(beam));
    }
    return out;
}
std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next, const Prompts& prompts,
                                        const GenerationOptions& options) {
    require_function(next);
    const NextLogits next_logits = [&](const GenerationStep& step) {
        std::vector<std::vector<float>> out;
        for (const auto& sequence : step.sequences) out.push_back(next(sequence));
        return out;
    };
    return generate(next_logits, prompts, options);
}
std::vector<GeneratedSequence> generate(const NextLogitsOfTensor& next, const Prompts& prompts,
                                        const GenerationOptions& options) {
    require_function(next);
    return generate(NextLogits(TensorLogits(next, options)), prompts, options);
}
std::vector<GeneratedSequence> generate(nn::Layer& model, const Prompts& prompts, const GenerationOptions& options) {
    const nn::EvaluationMode evaluation(model);
    GenerationOptions device_options = options;
    if (const auto tensors = model.state_dict(); !options.device && !tensors.empty())
        device_options.device = tensors[0].tensor.device();
    const NextLogitsOfTensor next = [&](const Tensor& tokens) { return model(tokens); };
    return generate(next, prompts, device_options);
}

std::vector<GeneratedSequence> generate(const NextLogits& next, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    return generate(next, single_prompt(prompt), options);
}
std::vector<GeneratedSequence> generate(const NextLogitsOfOne& next, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    return generate(next, single_prompt(prompt), options);
}
std::vector<GeneratedSequence> generate(const NextLogitsOfTensor& next, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    return generate(next, single_prompt(prompt), options);
}
std::vector<GeneratedSequence> generate(nn::Layer& model, std::span<const std::int64_t> prompt,
                                        const GenerationOptions& options) {
    return generate(model, single_prompt(prompt), options);
}

}  // namespace declivity::text
