#include <declivity/models/generate.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <declivity/tensor/random.hpp>
#include <declivity/tensor/record.hpp>
#include <fmt/format.h>

namespace declivity::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor with_largest(const Tensor& scores, std::int64_t count) {
    const std::int64_t most = std::min(count, scores.size(-1));
    const Tensor least = slice(topk(scores, most).values, -1, most - 1, most);
    return where(scores < least, -kInfinity, scores);
}

Tensor with_likeliest(const Tensor& scores, double share) {
    const Tensor sorted = sort(scores, -1, true).values, chances = softmax(sorted, -1);
    // Those before which less than the share has come; the first always.
    const Tensor kept = cumsum(chances, -1) - chances < share;
    return where(scores < amin(where(kept, sorted, kInfinity), {-1}, true), -kInfinity, scores);
}

/// Evaluation mode, until the end.
class Evaluation {
  public:
    explicit Evaluation(nn::Module& model) : model_(model), training_(model.training()) {
        if (training_) model_.eval();
    }
    ~Evaluation() {
        if (training_) model_.train();
    }
    Evaluation(const Evaluation&) = delete;
    Evaluation& operator=(const Evaluation&) = delete;

  private:
    nn::Module& model_;
    bool training_;
};

struct Prompts {
    Tensor tokens, lengths;  ///< (N, L) filled up at the end, i64; (N), i64
    bool ragged;
};

Prompts prompts_of(const Tensor& prompts, const GenerateOptions& options) {
    if (prompts.rank() != 2 || prompts.size(0) < 1 || prompts.size(1) < 1)
        throw ShapeError(
            fmt::format("generate: wants prompts (N, L) of at least one token, got {}", prompts.shape().str()));
    if (prompts.dtype() != DType::i64 && prompts.dtype() != DType::i32)
        throw TypeError(fmt::format("generate: wants prompts of i64 or i32, got {}", name_of(prompts.dtype())));
    const std::int64_t texts = prompts.size(0), length = prompts.size(1);
    const Tensor tokens = prompts.to(DType::i64);
    if (!options.lengths.defined()) return {tokens, full({texts}, length, {DType::i64, prompts.device()}), false};
    ops::require_shape("generate", "lengths", options.lengths.shape(), {texts});
    const Tensor lengths = clamp(options.lengths.to(DType::i64), 1, length);
    if (options.padding == PromptPadding::right) return {tokens, lengths, true};
    const Tensor from = arange(0, length, 1, {DType::i64, prompts.device()}) + unsqueeze(length - lengths, 1);
    return {gather(tokens, 1, clamp(from, 0, length - 1)), lengths, true};
}

/// Row lengths[b] + behind - 1 of each (N, L, width).
Tensor last_of(const Tensor& hidden, const Tensor& lengths, std::int64_t behind) {
    const Tensor at = reshape(lengths + (behind - 1), {hidden.size(0), 1, 1});
    return reshape(gather(hidden, 1, broadcast_to(at, {hidden.size(0), 1, hidden.size(2)})),
                   {hidden.size(0), hidden.size(2)});
}

/// Whether a token ends its text.
Tensor ends(const Tensor& tokens, const std::vector<std::int64_t>& ids) {
    Tensor found = tokens == ids.at(0);
    for (std::size_t i = 1; i < ids.size(); ++i) found = found | (tokens == ids[i]);
    return found;
}

/// Prompts with the first `count` of the tokens (N, most) behind them, and pads up to L + most.
Tensor joined(const Prompts& prompts, const Tensor& written, const Tensor& count, std::int64_t pad) {
    const std::int64_t texts = prompts.tokens.size(0), length = prompts.tokens.size(1), most = written.size(1);
    const TensorOptions whole{DType::i64, written.device()};
    const Tensor place = reshape(arange(0, length + most, 1, whole), {1, length + most}),
                 lengths = unsqueeze(prompts.lengths, 1), behind = place - lengths;
    const auto picked = [&](const Tensor& from, const Tensor& at) {
        return gather(from, 1, broadcast_to(clamp(at, 0, from.size(1) - 1), {texts, length + most}));
    };
    return where(behind < 0, picked(prompts.tokens, place),
                 where(behind < unsqueeze(count, 1), picked(written, behind), pad));
}

void check(const CausalLM& model, const Tensor& prompts, const GenerateOptions& options) {
    if (options.max_new_tokens < 1)
        throw ValueError(fmt::format("generate: wants max_new_tokens of at least 1, got {}", options.max_new_tokens));
    if (prompts.size(1) + options.max_new_tokens > model.max_positions())
        throw ValueError(fmt::format("generate: wants texts of up to {} tokens, got prompts of {} and {} behind them",
                                     model.max_positions(), prompts.size(1), options.max_new_tokens));
    if (options.next.choose == nullptr) throw ValueError("generate: wants a function that chooses the next token");
    if (options.eos_interval < 1)
        throw ValueError(fmt::format("generate: wants eos_interval of at least 1, got {}", options.eos_interval));
}

/// Calls of the model, one after the other: each gives the tokens (N) that come next.
class Writer {
  public:
    Writer(CausalLM& model, const Prompts& prompts, const GenerateOptions& options)
        : model_(model),
          prompts_(prompts),
          options_(options),
          step_([this](const std::vector<Tensor>& in) { return std::vector{step(in.at(0))}; },
                {.when_refused = WhenRefused::run}) {
        if (!options.use_cache) return;
        const std::int64_t texts = prompts.tokens.size(0), room = prompts.tokens.size(1) + options.max_new_tokens;
        cache_ = model.make_cache(texts, room, options.cache);
        if (options.cache.pages)
            for (std::int64_t text = 0; text < texts; ++text) cache_.reserve(text, room);
    }

    Tensor first() {
        // Read before the model has work to wait for.
        const std::vector<std::int64_t> tokens = prompts_.tokens.to_vector<std::int64_t>();
        const Tensor hidden = model_.hidden_states(prompts_.tokens, {.cache = cache_});
        if (cache_.defined() && prompts_.ragged) cache_.set_lengths(prompts_.lengths);
        const Tensor scores = model_.logits(last_of(hidden, prompts_.lengths, 0));
        for (const std::int64_t one : tokens)
            if (one < 0 || one >= scores.size(1))
                throw ValueError(
                    fmt::format("generate: wants tokens of prompts in 0 .. {}, got {}", scores.size(1) - 1, one));
        return chosen(scores);
    }
    /// @param before tokens that were chosen last
    /// @param written all tokens so far, the `count` of them
    Tensor next(const Tensor& before, const Tensor& written, std::int64_t count) {
        if (!options_.use_cache) {
            const Tensor counts = full({before.size(0)}, count, {DType::i64, before.device()});
            const Tensor text = joined(prompts_, slice(written, 1, 0, count), counts, 0);
            return chosen(model_.logits(last_of(model_.hidden_states(text, {}), prompts_.lengths, count)));
        }
        const Tensor made = options_.record ? step_({before})[0] : step(before);
        return options_.next.replayable ? made : chosen(made);
    }

  private:
    Tensor step(const Tensor& before) {
        const std::int64_t texts = before.size(0);
        const Tensor hidden = model_.hidden_states(reshape(before, {texts, 1}), {.cache = cache_});
        const Tensor scores = model_.logits(reshape(hidden, {texts, hidden.size(2)}));
        return options_.next.replayable ? chosen(scores) : scores;
    }
    Tensor chosen(const Tensor& scores) {
        const Tensor tokens = options_.next.choose(scores);
        ops::require_shape("generate", "chosen tokens", tokens.shape(), {scores.size(0)});
        if (tokens.dtype() != DType::i64)
            throw TypeError(fmt::format("generate: wants chosen tokens of i64, got {}", name_of(tokens.dtype())));
        return tokens;
    }

    CausalLM& model_;
    const Prompts& prompts_;
    const GenerateOptions& options_;
    nn::KeyValueCache cache_;
    Recorded step_;
};

}  // namespace

NextToken greedy() {
    return {[](const Tensor& scores) { return argmax(scores, -1); }, true};
}

NextToken sampling(const SamplingOptions& options) {
    if (!(options.temperature > 0))
        throw ValueError(fmt::format("sampling: wants a temperature above 0, got {}", options.temperature));
    if (options.top_k && *options.top_k < 1)
        throw ValueError(fmt::format("sampling: wants top_k of at least 1, got {}", *options.top_k));
    if (options.top_p && !(*options.top_p > 0 && *options.top_p <= 1))
        throw ValueError(fmt::format("sampling: wants top_p in (0, 1], got {}", *options.top_p));
    return {[options](const Tensor& scores) {
                Tensor all = scores.to(compute_type(scores.dtype())) / options.temperature;
                if (options.top_k) all = with_largest(all, *options.top_k);
                if (options.top_p) all = with_likeliest(all, *options.top_p);
                return categorical(all, -1, options.generator);
            },
            true};
}

Generated generate(CausalLM& model, const Tensor& prompts, const GenerateOptions& options) {
    const NoGrad no_grad;
    const Prompts given = prompts_of(prompts, options);
    check(model, prompts, options);
    const Evaluation evaluation(model);
    const std::int64_t texts = prompts.size(0), most = options.max_new_tokens;
    const TensorOptions whole{DType::i64, prompts.device()};
    Tensor written = full({texts, most}, options.pad_token_id, whole).clone();
    Writer writer(model, given, options);
    Tensor tokens;
    for (std::int64_t count = 0; count < most; ++count) {
        tokens = count == 0 ? writer.first() : writer.next(tokens, written, count);
        written[{Slice(), count}] = tokens;
        if (!options.eos_token_ids.empty() && (count + 1) % options.eos_interval == 0 &&
            all(any(ends(slice(written, 1, 0, count + 1), options.eos_token_ids), {1})).item<bool>())
            break;
    }
    Tensor counts = full({texts}, most, whole);
    if (!options.eos_token_ids.empty()) {
        const Tensor ended = cumsum(ends(written, options.eos_token_ids).to(DType::i64), 1);
        // Up to the first that ends the text, and with it.
        counts = minimum(sum((ended == 0).to(DType::i64), {1}) + 1, most);
    }
    return {joined(given, written, counts, options.pad_token_id), given.lengths + counts};
}

}  // namespace declivity::models
