#include "cached_logits.hpp"

#include <algorithm>
#include <numeric>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::models {

nn::KeyValueCache cache_for(const CausalLM& model, std::int64_t texts, std::int64_t max_length,
                            const text::GenerationOptions& options) {
    nn::KeyValueCache cache = model.make_cache(texts, max_length, options.cache);
    if (options.cache.pages)
        for (std::int64_t text = 0; text < texts; ++text) cache.reserve(text, max_length);
    return cache;
}

std::optional<Device> device_of(const CausalLM& model) {
    const StateDict tensors = model.state_dict();
    return tensors.empty() ? std::nullopt : std::optional(tensors[0].tensor.device());
}

Tensor gather_last(const Tensor& hidden, const Tensor& lengths, std::int64_t offset) {
    const Tensor index = reshape(lengths + (offset - 1), {hidden.size(0), 1, 1});
    return reshape(gather(hidden, 1, broadcast_to(index, {hidden.size(0), 1, hidden.size(2)})),
                   {hidden.size(0), hidden.size(2)});
}

CachedLogits::CachedLogits(CausalLM& model, std::int64_t texts, std::int64_t max_length,
                           const text::GenerationOptions& options)
    : model_(model),
      texts_(texts),
      capture_(options.record.value_or(options.capture)),
      device_(device_of(model)),
      cache_(cache_for(model, texts, max_length, options)),
      step_(
          [this](const std::vector<Tensor>& inputs) {
              const Tensor hidden = model_.hidden_states(inputs.at(0), {.cache = cache_});
              return std::vector{model_.logits(reshape(hidden, {hidden.size(0), hidden.size(2)}))};
          },
          {.when_refused = WhenRefused::run}) {}

bool CachedLogits::continues_previous(const text::GenerationStep& step) const {
    if (previous_sequences_.empty()) return false;
    for (std::size_t i = 0; i < step.sequences.size(); ++i) {
        const std::vector<std::int64_t>&current = step.sequences[i],
              &previous = previous_sequences_.at(static_cast<std::size_t>(step.parents[i]));
        if (current.size() != previous.size() + 1 || !std::equal(previous.begin(), previous.end(), current.begin()))
            return false;
    }
    return true;
}

Tensor CachedLogits::prefill(const text::GenerationStep& step) {
    if (!previous_sequences_.empty()) cache_.reset();
    // Beams begin with one sequence: the rows of the others read its last token as well.
    cache_rows_.resize(step.sequences.size());
    std::iota(cache_rows_.begin(), cache_rows_.end(), std::size_t{0});
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
    return model_.logits(gather_last(hidden, counts, 0));
}

Tensor CachedLogits::decode_step(const text::GenerationStep& step) {
    std::vector<std::size_t> rows;
    for (const std::int64_t parent : step.parents) rows.push_back(cache_rows_.at(static_cast<std::size_t>(parent)));
    std::vector<std::size_t> sorted = rows;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) {
        std::vector<std::int64_t> source_rows(static_cast<std::size_t>(texts_));
        std::iota(source_rows.begin(), source_rows.end(), 0);
        std::ranges::transform(rows, source_rows.begin(),
                               [](std::size_t row) { return static_cast<std::int64_t>(row); });
        cache_.reorder(source_rows, longest_);
        std::iota(rows.begin(), rows.end(), std::size_t{0});
    }
    cache_rows_ = std::move(rows);
    // Rows without a sequence read a token, too, since all steps have the same shape.
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(texts_), 0);
    for (std::size_t i = 0; i < cache_rows_.size(); ++i) tokens[cache_rows_[i]] = step.sequences[i].back();
    const Tensor input_ids = Tensor::from(tokens, {texts_, 1}, device_);
    ++longest_;
    return capture_ ? step_({input_ids})[0]
                    : model_.logits(reshape(model_.hidden_states(input_ids, {.cache = cache_}), {texts_, -1}));
}

std::vector<std::vector<float>> CachedLogits::operator()(const text::GenerationStep& step) {
    const NoGrad no_grad;
    const Tensor scores = continues_previous(step) ? decode_step(step) : prefill(step);
    previous_sequences_ = step.sequences;
    const std::vector<float> values = scores.to(DType::f32).to_vector<float>();
    const std::int64_t size = scores.size(1);
    std::vector<std::vector<float>> out;
    for (const std::size_t row : cache_rows_) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row) * size;
        out.emplace_back(begin, begin + size);
    }
    return out;
}

}  // namespace declivity::models
