// Layer 5. Samplers: which examples an epoch has, and in which order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::data {

/// What a sampler is asked about.
struct Epoch {
    std::int64_t examples = 0;  ///< of the data set
    std::int64_t batch = 1;     ///< examples a batch
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
};

/// Gives the order of an epoch, as a function of what it is asked alone: so an epoch can be begun again, and resumed in
/// the middle. One of your own overrides `indices`; or `batches`, where batches have sizes of their own.
class DECLIVITY_API Sampler {
  public:
    virtual ~Sampler();
    /// Indices of the data set, in order; they are cut into batches.
    [[nodiscard]] virtual std::vector<std::int64_t> indices(const Epoch& of) const = 0;
    /// The indices of each batch.
    [[nodiscard]] virtual std::vector<std::vector<std::int64_t>> batches(const Epoch& of) const;
};

/// 0, 1, 2, ...
class DECLIVITY_API SequentialSampler : public Sampler {
  public:
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;
};

struct RandomSamplerOptions {
    bool replacement = false;                          ///< each index is drawn from all of them
    std::optional<std::int64_t> count = std::nullopt;  ///< indices an epoch; as many as there are examples if none
};
/// A random order. Without replacement and count it is that of LoaderOptions::shuffle, and a count above the number of
/// examples begins another round.
class DECLIVITY_API RandomSampler : public Sampler {
  public:
    /// @throws ValueError for a count below 0
    explicit RandomSampler(const RandomSamplerOptions& options = {});
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    RandomSamplerOptions options_;
};

/// Draws indices with probabilities in proportion to weights, with replacement or without.
class DECLIVITY_API WeightedRandomSampler : public Sampler {
  public:
    /// @param weights one for each example, at least 0; @param count indices an epoch
    /// @throws ValueError for a weight that is negative or not finite, for none above 0, for a count below 0, and
    /// without replacement for a count of more than the weights above 0
    WeightedRandomSampler(std::vector<double> weights, std::int64_t count, bool replacement = true);
    /// @throws ValueError unless there is a weight for each example
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    std::vector<double> weights_;
    std::int64_t count_;
    bool replacement_;
};

struct DistributedSamplerOptions {
    bool shuffle = true;     ///< where there is no sampler below
    bool drop_last = false;  ///< leaves out what does not divide, instead of repeating the first indices
    /// Whose indices are dealt out; it must give the same ones in every process.
    std::shared_ptr<const Sampler> of = nullptr;
};
/// The share of one of several processes or devices: indices rank, rank + replicas, ... of an order that all of them
/// have in common, as many for each.
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
    bool shuffle = true;  ///< the examples of a pool, and the batches; otherwise in order of length
    std::int64_t pool =
        100;  ///< batches whose examples are sorted together: fewer are more random, more are more alike
};
/// Batches of examples of similar length, for sequences that are padded: the examples in random order are cut into
/// pools, each sorted by length and cut into batches, whose order is random. Only the last batch is smaller.
class DECLIVITY_API BucketSampler : public Sampler {
  public:
    /// @param lengths one for each example
    /// @throws ValueError for a pool below 1
    explicit BucketSampler(std::vector<std::int64_t> lengths, const BucketSamplerOptions& options = {});
    /// @throws ValueError unless there is a length for each example
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override;

  private:
    std::vector<std::int64_t> lengths_;
    BucketSamplerOptions options_;
};

/// A function that gives the indices: another curriculum in each epoch, say.
class DECLIVITY_API FunctionSampler : public Sampler {
  public:
    using Function = std::function<std::vector<std::int64_t>(const Epoch& of)>;
    /// @throws ValueError for an empty function
    explicit FunctionSampler(Function function);
    [[nodiscard]] std::vector<std::int64_t> indices(const Epoch& of) const override { return function_(of); }

  private:
    Function function_;
};

}  // namespace declivity::data
