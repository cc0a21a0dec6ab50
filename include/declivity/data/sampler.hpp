// Layer 7. Samplers: selection and order of the examples of an epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// Input of a sampler.
struct Epoch {
    std::int64_t examples = 0;  ///< examples of the data set
    std::int64_t batch = 1;     ///< batch size
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
};

/// Defines the order of an epoch as a pure function of its argument, so that an epoch can be restarted, or resumed in
/// the middle. A custom sampler overrides `indices`; or `batches`, for batches of varying size.
class DECLIVITY_API Sampler {
  public:
    virtual ~Sampler();
    /// Indices into the data set, in order; they are split into batches.
    [[nodiscard]] virtual std::vector<std::int64_t> indices(const Epoch& of) const = 0;
    /// Indices of each batch.
    [[nodiscard]] virtual std::vector<std::vector<std::int64_t>> batches(const Epoch& of) const;
};

/// 0, 1, 2, ...
class DECLIVITY_API SequentialSampler : public Sampler {
  public:
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;
};

struct RandomSamplerOptions {
    bool replacement = false;                          ///< sample each index independently from all examples
    std::optional<std::int64_t> count = std::nullopt;  ///< indices per epoch; the number of examples if none
};
/// Random order. Without replacement and count it equals that of LoaderOptions::shuffle; a count above the number of
/// examples starts another permutation.
class DECLIVITY_API RandomSampler : public Sampler {
  public:
    /// @throws ValueError for a negative count
    explicit RandomSampler(const RandomSamplerOptions& options = {});
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    RandomSamplerOptions options_;
};

/// Samples indices with probabilities proportional to weights, with or without replacement.
class DECLIVITY_API WeightedRandomSampler : public Sampler {
  public:
    /// @param weights one for each example, at least 0
    /// @param count indices per epoch
    /// @throws ValueError for a negative or non-finite weight, if no weight is above 0, for a negative count, and
    /// without replacement for a count above the number of positive weights
    WeightedRandomSampler(std::vector<double> weights, std::int64_t count, bool replacement = true);
    /// @throws ValueError unless there is one weight for each example
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    std::vector<double> weights_;
    std::int64_t count_;
    bool replacement_;
};

struct DistributedSamplerOptions {
    bool shuffle = true;     ///< if `of` is not set
    bool drop_last = false;  ///< drop the indices that do not divide evenly instead of repeating the first ones
    /// Sampler whose indices are distributed; it must return the same indices in every process.
    std::shared_ptr<const Sampler> of = nullptr;
};
/// The shard of one of several processes or devices: indices rank, rank + replicas, ... of an order that is common to
/// all; all shards have the same size.
class DECLIVITY_API DistributedSampler : public Sampler {
  public:
    /// @throws ValueError unless 0 <= rank < replicas
    DistributedSampler(std::int64_t replicas, std::int64_t rank, DistributedSamplerOptions options = {});
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    std::int64_t replicas_, rank_;
    DistributedSamplerOptions options_;
};

struct BucketSamplerOptions {
    bool shuffle = true;  ///< shuffle the examples of a pool, and the batches; otherwise ordered by length
    std::int64_t pool =
        100;  ///< batches that are sorted together: fewer give more randomness, more give more similar lengths
};
/// Batches of examples of similar length, for padded sequences (bucketing): the shuffled examples are split into pools,
/// each sorted by length and split into batches, which are shuffled. Only the last batch is smaller.
class DECLIVITY_API BucketSampler : public Sampler {
  public:
    /// @param lengths one for each example
    /// @throws ValueError for a pool below 1
    explicit BucketSampler(std::vector<std::int64_t> lengths, const BucketSamplerOptions& options = {});
    /// @throws ValueError unless there is one length for each example
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    std::vector<std::int64_t> lengths_;
    BucketSamplerOptions options_;
};

/// Calls a function for the indices, for example for curriculum learning.
class DECLIVITY_API FunctionSampler : public Sampler {
  public:
    using Function = std::function<std::vector<std::int64_t>(const Epoch& of)>;
    /// @throws ValueError for an empty function
    explicit FunctionSampler(Function function);
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override { return function_(of); }

  private:
    Function function_;
};

/// @}

}  // namespace declivity::data
