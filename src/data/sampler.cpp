#include <declivity/data/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::data {
namespace {

/// In steps of 2^-53.
double uniform53(Random& random) {
    const std::uint64_t high = random.word(), low = random.word();
    return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

/// Streams of (seed, epoch) for samplers; shuffled_order uses number 0.
Random stream(const Epoch& epoch, std::uint64_t number) { return {epoch.seed, epoch.epoch, number, Purpose::shuffle}; }

/// Weighted sampling without replacement: a binary tree of partial sums, whose leaves are the weights.
class WeightTree {
  public:
    explicit WeightTree(const std::vector<double>& weights) {
        while (leaves_ < weights.size()) leaves_ *= 2;
        sums_.resize(2 * leaves_, 0.0);
        std::ranges::copy(weights, sums_.begin() + static_cast<std::ptrdiff_t>(leaves_));
        for (std::size_t node = leaves_ - 1; node > 0; --node) sums_[node] = sums_[2 * node] + sums_[2 * node + 1];
    }
    /// @param point in [0, 1)
    [[nodiscard]] std::size_t draw(double point) const {
        std::size_t node = 1;
        double remaining = point * sums_[1];
        while (node < leaves_) {
            node *= 2;
            // Never descends into a subtree of weight 0, whatever the rounding.
            if (sums_[node] <= 0 || (remaining >= sums_[node] && sums_[node + 1] > 0)) remaining -= sums_[node++];
        }
        return node - leaves_;
    }
    void remove(std::size_t leaf) {
        std::size_t node = leaf + leaves_;
        sums_[node] = 0;
        while ((node /= 2) > 0) sums_[node] = sums_[2 * node] + sums_[2 * node + 1];
    }

  private:
    std::size_t leaves_ = 1;
    std::vector<double> sums_;
};

template <class T>
void shuffle(std::vector<T>& values, Random random) {
    for (std::size_t remaining = values.size(); remaining > 1; --remaining)
        std::swap(values[remaining - 1],
                  values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(remaining)))]);
}

}  // namespace

Sampler::~Sampler() = default;

std::vector<std::vector<std::int64_t>> Sampler::batches(const Epoch& epoch) const {
    const std::vector<std::int64_t> order = indices(epoch);
    std::vector<std::vector<std::int64_t>> out;
    for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(epoch.batch)) {
        const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(epoch.batch));
        out.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return out;
}

std::vector<std::int64_t> SequentialSampler::indices(const Epoch& epoch) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(epoch.examples));
    std::iota(out.begin(), out.end(), std::int64_t{0});
    return out;
}

RandomSampler::RandomSampler(const RandomSamplerOptions& options) : options_(options) {
    if (options.count.value_or(0) < 0)
        throw ValueError(fmt::format("RandomSampler: expected a count of at least 0, got {}", *options.count));
}

std::vector<std::int64_t> RandomSampler::indices(const Epoch& epoch) const {
    const auto count = static_cast<std::size_t>(options_.count.value_or(epoch.examples));
    std::vector<std::int64_t> out;
    if (options_.replacement) {
        Random random = stream(epoch, 1);
        while (out.size() < count) out.push_back(random.below(epoch.examples));
        return out;
    }
    out = shuffled_order(epoch.examples, epoch.seed, epoch.epoch);
    for (std::uint64_t round = 2; out.size() < count; ++round) {
        std::vector<std::int64_t> extra = SequentialSampler().indices(epoch);
        shuffle(extra, stream(epoch, round));
        out.insert(out.end(), extra.begin(), extra.end());
    }
    out.resize(count);
    return out;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, std::int64_t count, bool replacement)
    : weights_(std::move(weights)), count_(count), replacement_(replacement) {
    for (std::size_t i = 0; i < weights_.size(); ++i)
        if (!(weights_[i] >= 0) || !std::isfinite(weights_[i]))
            throw ValueError(fmt::format("WeightedRandomSampler: expected weights of at least 0, got {} for example {}",
                                         weights_[i], i));
    const std::int64_t positive_count = std::ranges::count_if(weights_, [](double weight) { return weight > 0; });
    if (positive_count == 0) throw ValueError("WeightedRandomSampler: expected a weight above 0, got none");
    if (count < 0)
        throw ValueError(fmt::format("WeightedRandomSampler: expected a count of at least 0, got {}", count));
    if (!replacement && count > positive_count)
        throw ValueError(
            fmt::format("WeightedRandomSampler: expected, without replacement, a count of at most {}, the "
                        "number of weights above 0, got {}",
                        positive_count, count));
}

std::vector<std::int64_t> WeightedRandomSampler::indices(const Epoch& epoch) const {
    if (std::cmp_not_equal(weights_.size(), epoch.examples))
        throw ValueError(fmt::format("WeightedRandomSampler: expected a weight for each of {} examples, got {}",
                                     epoch.examples, weights_.size()));
    Random random = stream(epoch, 1);
    WeightTree tree(weights_);
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count_; ++i) {
        const std::size_t index = tree.draw(uniform53(random));
        out.push_back(static_cast<std::int64_t>(index));
        if (!replacement_) tree.remove(index);
    }
    return out;
}

DistributedSampler::DistributedSampler(std::int64_t replicas, std::int64_t rank, DistributedSamplerOptions options)
    : replicas_(replicas), rank_(rank), options_(std::move(options)) {
    if (replicas < 1 || rank < 0 || rank >= replicas)
        throw ValueError(
            fmt::format("DistributedSampler: expected 0 <= rank < replicas, got rank {} of {}", rank, replicas));
}

std::vector<std::int64_t> DistributedSampler::indices(const Epoch& epoch) const {
    // A sampler that groups by length does so over the batches of all replicas together.
    Epoch global_epoch = epoch;
    global_epoch.batch *= replicas_;
    const std::vector<std::int64_t> order = options_.of        ? options_.of->indices(global_epoch)
                                            : options_.shuffle ? shuffled_order(epoch.examples, epoch.seed, epoch.epoch)
                                                               : SequentialSampler().indices(epoch);
    const auto size = static_cast<std::int64_t>(order.size());
    const std::int64_t per_replica = options_.drop_last ? size / replicas_ : (size + replicas_ - 1) / replicas_;
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < per_replica; ++i)
        out.push_back(order[static_cast<std::size_t>((rank_ + i * replicas_) % size)]);
    return out;
}

BucketSampler::BucketSampler(std::vector<std::int64_t> lengths, const BucketSamplerOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
    if (options.pool < 1)
        throw ValueError(fmt::format("BucketSampler: expected a pool of at least 1 batch, got {}", options.pool));
}

std::vector<std::int64_t> BucketSampler::indices(const Epoch& epoch) const {
    if (std::cmp_not_equal(lengths_.size(), epoch.examples))
        throw ValueError(fmt::format("BucketSampler: expected a length for each of {} examples, got {}", epoch.examples,
                                     lengths_.size()));
    const auto by_length = [this](std::int64_t a, std::int64_t b) {
        return lengths_[static_cast<std::size_t>(a)] < lengths_[static_cast<std::size_t>(b)];
    };
    if (!options_.shuffle) {
        std::vector<std::int64_t> order = SequentialSampler().indices(epoch);
        std::ranges::stable_sort(order, by_length);
        return order;
    }
    const std::vector<std::int64_t> order = shuffled_order(epoch.examples, epoch.seed, epoch.epoch);
    const auto batch = static_cast<std::size_t>(epoch.batch);
    const std::size_t pool = batch * static_cast<std::size_t>(std::min(options_.pool, epoch.examples));
    std::vector<std::vector<std::int64_t>> batches;
    std::vector<std::int64_t> partial_batch;
    for (std::size_t begin = 0; begin < order.size(); begin += pool) {
        std::vector<std::int64_t> pool_indices(
            order.begin() + static_cast<std::ptrdiff_t>(begin),
            order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), begin + pool)));
        std::ranges::stable_sort(pool_indices, by_length);
        for (std::size_t first = 0; first < pool_indices.size(); first += batch) {
            const std::size_t end = std::min(pool_indices.size(), first + batch);
            std::vector<std::int64_t> batch_indices(pool_indices.begin() + static_cast<std::ptrdiff_t>(first),
                                                    pool_indices.begin() + static_cast<std::ptrdiff_t>(end));
            if (batch_indices.size() == batch) batches.push_back(std::move(batch_indices));
            else partial_batch = std::move(batch_indices);
        }
    }
    shuffle(batches, stream(epoch, 1));
    batches.push_back(std::move(partial_batch));
    std::vector<std::int64_t> out;
    for (const auto& item : batches) out.insert(out.end(), item.begin(), item.end());
    return out;
}

FunctionSampler::FunctionSampler(Function function) : function_(std::move(function)) {
    if (!function_) throw ValueError("FunctionSampler: expected a function, got an empty one");
}

}  // namespace declivity::data
