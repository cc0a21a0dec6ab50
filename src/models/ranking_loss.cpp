#include <declivity/models/ranking_loss.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity::models {
namespace {

constexpr double kMaskedScore = -std::numeric_limits<double>::infinity();

Tensor upcast(const Tensor& x) { return x.to(compute_type(x.dtype())); }

/// Checks that a tensor is of the same type and on the same device as x.
void require_alike(const char* function, const char* name_x, const Tensor& x, const char* name, const Tensor& other) {
    ops::require_alike(function, name_x, x.dtype(), x.device(), name, other.dtype(), other.device());
}

void require_vectors(const char* function, const char* name, const Tensor& x) {
    ops::require_real(function, name, x.dtype());
    ops::require_rank(function, name, x.shape(), 2, "N, D");
}

void require_temperature(const char* function, double temperature) {
    if (!(temperature > 0))
        throw ValueError(fmt::format("{}: expected a temperature above 0, got {}", function, temperature));
}

void require_ids(const char* function, const char* name, const Tensor& ids, std::int64_t count) {
    if (ids.dtype() != DType::i64 && ids.dtype() != DType::i32)
        throw TypeError(fmt::format("{}: expected {} of i64 or i32, got {}", function, name, name_of(ids.dtype())));
    ops::require_shape(function, name, ids.shape(), {count});
}

void require_log_q(const char* function, const char* name, const Tensor& log_q, std::int64_t count) {
    ops::require_real(function, name, log_q.dtype());
    ops::require_shape(function, name, log_q.shape(), {count});
}

/// Checks that both are defined, or neither. @return whether they are
bool both_defined(const char* function, const char* names, const Tensor& a, const Tensor& b) {
    if (a.defined() != b.defined())
        throw ValueError(fmt::format("{}: expected both of {}, or neither", function, names));
    return a.defined();
}

}  // namespace

Tensor bpr_loss(const Tensor& positive, const Tensor& negative, Reduction reduction) {
    const FunctionCall call("bpr_loss", {{"positive", positive}, {"negative", negative}}, {{"reduction", reduction}});
    call.require_defined({"positive", "negative"});
    ops::require_real("bpr_loss", "positive", positive.dtype());
    require_alike("bpr_loss", "positive", positive, "negative", negative);
    ops::require_rank("bpr_loss", "positive", positive.shape(), 1, "N");
    const Shape& got = negative.shape();
    if (got.rank() < 1 || got.rank() > 2 || got[0] != positive.size(0))
        throw ShapeError(
            fmt::format("bpr_loss: expected negative ({0}) or ({0}, M), got {1}", positive.size(0), got.str()));
    const Tensor positive_scores = got.rank() == 2 ? unsqueeze(upcast(positive), 1) : upcast(positive);
    const Tensor margin = positive_scores - upcast(negative);
    return call.result(bce_with_logits(margin, ones_like(margin), reduction).to(positive.dtype()));
}

Tensor in_batch_softmax_loss(const Tensor& users, const Tensor& items, const InBatchSoftmaxOptions& options) {
    constexpr const char* kName = "in_batch_softmax_loss";
    const FunctionCall call(
        kName, {{"users", users}, {"items", items}, {"log_q", options.log_q}, {"item_ids", options.item_ids}},
        {{"temperature", options.temperature}, {"reduction", options.reduction}});
    call.require_defined({"users", "items"});
    require_vectors(kName, "users", users);
    require_alike(kName, "users", users, "items", items);
    ops::require_shape(kName, "items", items.shape(), users.shape());
    require_temperature(kName, options.temperature);
    const std::int64_t count = users.size(0);
    if (options.log_q.defined()) require_log_q(kName, "log_q", options.log_q, count);
    if (options.item_ids.defined()) require_ids(kName, "item_ids", options.item_ids, count);

    Tensor scores = matmul(upcast(users) * (1 / options.temperature), transpose(upcast(items)));
    if (options.log_q.defined()) scores = scores - upcast(options.log_q).to(scores.dtype());
    const Tensor labels = arange(0, count, 1, {DType::i64, users.device()});
    if (options.item_ids.defined()) {
        const Tensor same_item = unsqueeze(options.item_ids, 1) == unsqueeze(options.item_ids, 0);
        const Tensor off_diagonal = unsqueeze(labels, 1) != unsqueeze(labels, 0);
        scores = masked_fill(scores, logical_and(same_item, off_diagonal), kMaskedScore);
    }
    return call.result(cross_entropy(scores, labels, {.reduction = options.reduction}).to(users.dtype()));
}

Tensor sampled_softmax_loss(const Tensor& users, const Tensor& positives, const Tensor& negatives,
                            const SampledSoftmaxOptions& options) {
    constexpr const char* kName = "sampled_softmax_loss";
    const FunctionCall call(kName,
                            {{"users", users},
                             {"positives", positives},
                             {"negatives", negatives},
                             {"log_q_positive", options.log_q_positive},
                             {"log_q_negative", options.log_q_negative},
                             {"positive_ids", options.positive_ids},
                             {"negative_ids", options.negative_ids}},
                            {{"temperature", options.temperature}, {"reduction", options.reduction}});
    call.require_defined({"users", "positives", "negatives"});
    require_vectors(kName, "users", users);
    require_alike(kName, "users", users, "positives", positives);
    require_alike(kName, "users", users, "negatives", negatives);
    ops::require_shape(kName, "positives", positives.shape(), users.shape());
    if (negatives.rank() != 2 || negatives.size(1) != users.size(1))
        throw ShapeError(fmt::format("{}: expected negatives of shape (M, {}), got {}", kName, users.size(1),
                                     negatives.shape().str()));
    require_temperature(kName, options.temperature);
    const std::int64_t count = users.size(0), negative_count = negatives.size(0);
    const bool has_log_q =
        both_defined(kName, "log_q_positive and log_q_negative", options.log_q_positive, options.log_q_negative);
    const bool has_ids =
        both_defined(kName, "positive_ids and negative_ids", options.positive_ids, options.negative_ids);
    if (has_log_q) {
        require_log_q(kName, "log_q_positive", options.log_q_positive, count);
        require_log_q(kName, "log_q_negative", options.log_q_negative, negative_count);
    }
    if (has_ids) {
        require_ids(kName, "positive_ids", options.positive_ids, count);
        require_ids(kName, "negative_ids", options.negative_ids, negative_count);
    }

    const Tensor scaled_users = upcast(users) * (1 / options.temperature);
    Tensor positive_scores = sum(scaled_users * upcast(positives), {1}, true),
           negative_scores = matmul(scaled_users, transpose(upcast(negatives)));
    if (has_log_q) {
        positive_scores = positive_scores - unsqueeze(upcast(options.log_q_positive), 1).to(positive_scores.dtype());
        negative_scores = negative_scores - upcast(options.log_q_negative).to(positive_scores.dtype());
    }
    if (has_ids) {
        const Tensor same_item =
            unsqueeze(options.positive_ids.to(DType::i64), 1) == unsqueeze(options.negative_ids.to(DType::i64), 0);
        negative_scores = masked_fill(negative_scores, same_item, kMaskedScore);
    }
    const Tensor labels = zeros({count}, {DType::i64, users.device()});
    return call.result(
        cross_entropy(concat({positive_scores, negative_scores}, 1), labels, {.reduction = options.reduction})
            .to(users.dtype()));
}

NegativeSampler::NegativeSampler(const Tensor& weights) {
    if (!weights.defined()) throw ValueError("NegativeSampler: expected weights of shape (C), got an undefined tensor");
    ops::require_real("NegativeSampler", "weights", weights.dtype());
    if (weights.rank() != 1 || weights.size(0) < 1)
        throw ShapeError(fmt::format("NegativeSampler: expected weights of shape (C), of at least 1, got {}",
                                     weights.shape().str()));
    const NoGrad no_grad;
    weights_ = upcast(weights.detach()).clone();
    log_probabilities_ = log(weights_ / sum(weights_));
}

NegativeSampler NegativeSampler::uniform(std::int64_t count, const TensorOptions& options) {
    if (count < 1)
        throw ValueError(fmt::format("NegativeSampler::uniform: expected a count of at least 1, got {}", count));
    return NegativeSampler(ones({count}, options));
}

NegativeSampler NegativeSampler::log_uniform(std::int64_t count, const TensorOptions& options) {
    if (count < 1)
        throw ValueError(fmt::format("NegativeSampler::log_uniform: expected a count of at least 1, got {}", count));
    const Tensor index = arange(0, count, 1, options);
    return NegativeSampler(log1p(1 / (index + 1)));
}

Tensor NegativeSampler::sample(std::int64_t count, const std::optional<Generator>& generator) const {
    if (count < 1)
        throw ValueError(fmt::format("NegativeSampler::sample: expected a count of at least 1, got {}", count));
    return multinomial(weights_, count, true, generator);
}

Tensor NegativeSampler::log_probability(const Tensor& items) const {
    if (!items.defined()) throw ValueError("NegativeSampler::log_probability: expected items, got an undefined tensor");
    if (items.dtype() != DType::i64 && items.dtype() != DType::i32)
        throw TypeError(fmt::format("NegativeSampler::log_probability: expected items of i64 or i32, got {}",
                                    name_of(items.dtype())));
    return squeeze(embedding(items, unsqueeze(log_probabilities_, 1)), -1);
}

}  // namespace declivity::models
