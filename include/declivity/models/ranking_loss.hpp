// Layer 5. Losses of models that rank items for users from what users chose: nobody says what they do not like, so that
// other items stand for that.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions/loss.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::models {

/// -log sigmoid(positive - negative) (S. Rendle et al., BPR: Bayesian personalized ranking from implicit feedback,
/// 2009): scores of items that were chosen (N), and of others (N), or of several others for each (N, M).
/// @throws ShapeError, TypeError, ValueError naming the function
DECLIVITY_API Tensor bpr_loss(const Tensor& positive, const Tensor& negative, Reduction reduction = Reduction::mean);

struct InBatchSoftmaxOptions {
    double temperature = 1;  ///< scores are divided by it
    /// (N), logarithms of the probability with which each item comes into a batch, which are taken from its scores:
    /// without them popular items, which are negatives more often, are pushed down.
    Tensor log_q = {};
    /// (N), i32 or i64: the own item is no negative where it stands in another row as well. With log_q that is allowed
    /// for already, and better not told.
    Tensor item_ids = {};
    Reduction reduction = Reduction::mean;
};
/// Cross entropy of users items^T / temperature - log_q, where item i was chosen by user i, and those of all other rows
/// are its negatives (X. Yi et al., Sampling-bias-corrected neural modeling for large corpus item recommendations,
/// 2019): vectors of users (N, D) and items (N, D).
/// @throws ShapeError, TypeError, ValueError naming the function
DECLIVITY_API Tensor in_batch_softmax_loss(const Tensor& users, const Tensor& items,
                                           const InBatchSoftmaxOptions& options = {});

struct SampledSoftmaxOptions {
    double temperature = 1;  ///< scores are divided by it
    /// (N) and (M), logarithms of the probability with which the sampler draws each item (log_probability() of
    /// NegativeSampler), which are taken from the scores. Both, or neither.
    Tensor log_q_positive = {}, log_q_negative = {};
    /// (N) and (M), i32 or i64: what was drawn and is the own item is no negative. Both, or neither. With log_q that is
    /// allowed for already, and better not told, above all where items are few.
    Tensor positive_ids = {}, negative_ids = {};
    Reduction reduction = Reduction::mean;
};
/// Cross entropy over the item that was chosen and M that were drawn (Y. Bengio, J.-S. Senecal, Adaptive importance
/// sampling to accelerate training of a neural probabilistic language model, 2008): vectors of users (N, D), of their
/// items (N, D), and of drawn items (M, D), which are negatives of all users. With log_q, scores that make it least are
/// those that a softmax over all items would have, for any M (Z. Ma, M. Collins, Noise contrastive estimation and
/// negative sampling for conditional models, 2018).
/// @throws ShapeError, TypeError, ValueError naming the function
DECLIVITY_API Tensor sampled_softmax_loss(const Tensor& users, const Tensor& positives, const Tensor& negatives,
                                          const SampledSoftmaxOptions& options = {});

/// Draws items 0 .. C - 1 with given probabilities, on the device.
class DECLIVITY_API NegativeSampler {
  public:
    /// @param weights (C), floating, at least 0, which are not looked at: probabilities are in their proportion, such
    /// as how often each item was chosen, or that to the power of 0.75
    /// @throws ShapeError, TypeError
    explicit NegativeSampler(const Tensor& weights);
    /// All alike. @throws ValueError for fewer than 1 item
    static NegativeSampler uniform(std::int64_t count, const TensorOptions& options = {});
    /// log((k + 2) / (k + 1)) / log(C + 1), for items in the order of how popular they are (Zipf's law).
    /// @throws ValueError for fewer than 1 item
    static NegativeSampler log_uniform(std::int64_t count, const TensorOptions& options = {});

    /// `count` items, with replacement: (count), i64. @throws ValueError for a count below 1
    [[nodiscard]] Tensor sample(std::int64_t count, const std::optional<Generator>& generator = std::nullopt) const;
    /// Of items of any shape, i32 or i64; NaN for those that there are not.
    [[nodiscard]] Tensor log_probability(const Tensor& items) const;
    [[nodiscard]] std::int64_t size() const { return weights_.size(0); }

  private:
    Tensor weights_, log_probabilities_;
};

}  // namespace declivity::models
