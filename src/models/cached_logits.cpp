#include "cached_logits.hpp"

#include <algorithm>
#include <numeric>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::models {

nn::KeyValueCache cache_for(const CausalLM& model, std::int64_t texts, std::int64_t room,
                            const text::GenerationOptions& options) {
    nn::KeyValueCache cache = model.make_cache(texts, room, options.cache);
    if (options.cache.pages)
        for (std::int64_t text = 0; text < texts; ++text) cache.reserve(text, room);
    return cache;
}

std::optional<Device> device_of(const CausalLM& model) {
    const StateDict tensors = model.state_dict();
    return tensors.empty() ? std::nullopt : std::optional(tensors[0].tensor.device());
}

Tensor last_of(const Tensor& hidden, const Tensor& lengths, std::int64_t behind) {
    const Tensor at = reshape(lengths + (behind - 1), {hidden.size(0), 1, 1});
    return reshape(gather(hidden, 1, broadcast_to(at, {hidden.size(0), 1, hidden.size(2)})),
                   {hidden.size(0), hidden.size(2)});
}

CachedLogits::CachedLogits(CausalLM& model, std::int64_t texts, std::int64_t room,
                           const text::GenerationOptions& options)
    : model_(model),
      texts_(texts),
      capture_(options.record.value_or(options.capture)),
      device_(device_of(model)),
      cache_(cache_for(model, texts, room, options)),
      step_(
          [this](const std::vector<Tensor>& in) {
              const Tensor hidden = model_.hidden_states(in.at(0), {.cache = cache_});
              return std::vector{model_.logits(reshape(hidden, {hidden.size(0), hidden.size(2)}))};
          },
          {.when_refused = WhenRefused::run}) {}

bool CachedLogits::continues(const text::GenerationStep& step) const {
    if (before_.empty()) return false;
    for (std::size_t i = 0; i < step.sequences.size(); ++i) {
        const std::vector<std::int64_t>&now = step.sequences[i],
              &then = before_.at(static_cast<std::size_t>(step.parents[i]));
        if (now.size() != then.size() + 1 || !std::equal(then.begin(), then.end(), now.begin())) return false;
    }
    return true;
}

Tensor CachedLogits::read_prompts(const text::GenerationStep& step) {
    if (!before_.empty()) cache_.reset();
    // Beams begin with one sequence: the rows of the others read its last token as well.
    row_of_.resize(step.sequences.size());
    std::iota(row_of_.begin(), row_of_.end(), std::size_t{0});
    std::vector<std::int64_t> lengths;
    for (std::int64_t row = 0; row < texts_; ++row)
        lengths.push_back(static_cast<std::int64_t>(
            step.sequences[std::min(static_cast<std::size_t>(row), step.sequences.size() - 1)].size()));
    longest_ = std::ranges::max(lengths);
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(texts_ * longest_), 0);
    for (std::size_t row = 0; row < lengths.size(); ++row)
        std::ranges::copy(step.sequences[std::min(row, step.sequences.size() - 1)],
                          tokens.begin() + static_cast<std::ptrdiff_t>(row) * longest_);
    const Tensor hidden = model_.hidden_states(Tensor::from(tokens, {texts_, longest_}, device_), {.cache = cache_});
    const Tensor counts = Tensor::from(lengths, {texts_}, device_);
    if (std::ranges::min(lengths) < longest_) cache_.set_lengths(counts);
    return model_.logits(last_of(hidden, counts, 0));
}

Tensor CachedLogits::read_tokens(const text::GenerationStep& step) {
    std::vector<std::size_t> rows;
    for (const std::int64_t parent : step.parents) rows.push_back(row_of_.at(static_cast<std::size_t>(parent)));
    std::vector<std::size_t> sorted = rows;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) {
        std::vector<std::int64_t> from(static_cast<std::size_t>(texts_));
        std::iota(from.begin(), from.end(), 0);
        std::ranges::transform(rows, from.begin(), [](std::size_t row) { return static_cast<std::int64_t>(row); });
        cache_.reorder(from, longest_);
        std::iota(rows.begin(), rows.end(), std::size_t{0});
    }
    row_of_ = std::move(rows);
    // Rows without a sequence read a token, too, since all steps have the same shape.
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(texts_), 0);
    for (std::size_t i = 0; i < row_of_.size(); ++i) tokens[row_of_[i]] = step.sequences[i].back();
    const Tensor read = Tensor::from(tokens, {texts_, 1}, device_);
    ++longest_;
    return capture_ ? step_({read})[0]
                    : model_.logits(reshape(model_.hidden_states(read, {.cache = cache_}), {texts_, -1}));
}

std::vector<std::vector<float>> CachedLogits::operator()(const text::GenerationStep& step) {
    const NoGrad no_grad;
    const Tensor scores = continues(step) ? read_tokens(step) : read_prompts(step);
    before_ = step.sequences;
    const std::vector<float> all = scores.to(DType::f32).to_vector<float>();
    const std::int64_t size = scores.size(1);
    std::vector<std::vector<float>> out;
    for (const std::size_t row : row_of_) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(row) * size;
        out.emplace_back(from, from + size);
    }
    return out;
}

}  // namespace declivity::models
