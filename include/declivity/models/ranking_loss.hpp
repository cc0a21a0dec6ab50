// Layer 7. Ranking losses for recommendation from implicit feedback: only positive items are known, other items serve
// as negatives.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/functions/loss.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

/// -log sigmoid(positive - negative) (S. Rendle et al., BPR: Bayesian personalized ranking from implicit feedback,
/// 2009): scores of positive items (N), and of negative items (N), or several negatives for each (N, M).
/// @throws ShapeError, TypeError, ValueError naming the function
DECLIVITY_API Tensor bpr_loss(const Tensor& positive, const Tensor& negative, Reduction reduction = Reduction::mean);

struct InBatchSoftmaxOptions {
    double temperature = 1;  ///< divisor of the scores
    /// (N), log probability of each item to occur in a batch, which is subtracted from its scores (logQ correction):
    /// without it popular items, which are negatives more often, are scored too low.
    Tensor log_q = {};
    /// (N), i32 or i64: masks occurrences of the positive item in other rows, which would be false negatives. Better
    /// left out with log_q, which already accounts for them.
    Tensor item_ids = {};
    Reduction reduction = Reduction::mean;
};
/// In-batch softmax: cross entropy of users items^T / temperature - log_q, where item i is the positive of user i, and
/// the items of all other rows are its negatives (X. Yi et al., Sampling-bias-corrected neural modeling for large
/// corpus item recommendations, 2019): vectors of users (N, D) and items (N, D).
/// @throws ShapeError, TypeError, ValueError naming the function
DECLIVITY_API Tensor in_batch_softmax_loss(const Tensor& users, const Tensor& items,
                                           const InBatchSoftmaxOptions& options = {});

struct SampledSoftmaxOptions {
    double temperature = 1;  ///< divisor of the scores
    /// (N) and (M), log sampling probability of each item (log_probability() of NegativeSampler), which is subtracted
    /// from the scores. Both, or neither.
    Tensor log_q_positive = {}, log_q_negative = {};
    /// (N) and (M), i32 or i64: masks sampled negatives that equal the positive item. Both, or neither. Better left out
    /// with log_q, which already accounts for them, above all with few items.
    Tensor positive_ids = {}, negative_ids = {};
    Reduction reduction = Reduction::mean;
};
/// Sampled softmax: cross entropy over the positive item and M sampled negatives (Y. Bengio, J.-S. Senecal, Adaptive
/// importance sampling to accelerate training of a neural probabilistic language model, 2008): vectors of users (N, D),
/// of their items (N, D), and of sampled items (M, D), which are negatives of all users. With log_q, the minimum is at
/// the scores of a softmax over all items, for any M (Z. Ma, M. Collins, Noise contrastive estimation and negative
/// sampling for conditional models, 2018).
/// @throws ShapeError, TypeError, ValueError naming the function
DECLIVITY_API Tensor sampled_softmax_loss(const Tensor& users, const Tensor& positives, const Tensor& negatives,
                                          const SampledSoftmaxOptions& options = {});

/// Samples items 0 .. C - 1 with given probabilities, on the device.
class DECLIVITY_API NegativeSampler {
  public:
    /// @param weights (C), floating, at least 0 (values are not checked); probabilities are proportional to them, for
    /// example to the frequency of each item, or its power of 0.75
    /// @throws ShapeError, TypeError
    explicit NegativeSampler(const Tensor& weights);
    /// Uniform distribution. @throws ValueError for fewer than 1 item
    static NegativeSampler uniform(std::int64_t count, const TensorOptions& options = {});
    /// Log-uniform (Zipfian) distribution log((k + 2) / (k + 1)) / log(C + 1), for items ordered by decreasing
    /// popularity.
    /// @throws ValueError for fewer than 1 item
    static NegativeSampler log_uniform(std::int64_t count, const TensorOptions& options = {});

    /// Samples `count` items with replacement: (count), i64. @throws ValueError for a count below 1
    [[nodiscard]] Tensor sample(std::int64_t count, const std::optional<Generator>& generator = std::nullopt) const;
    /// Log probability of items of any shape, i32 or i64; NaN for ids out of range.
    [[nodiscard]] Tensor log_probability(const Tensor& items) const;
    [[nodiscard]] std::int64_t size() const { return weights_.size(0); }

  private:
    Tensor weights_, log_probabilities_;
};

/// @}

}  // namespace declivity::models
