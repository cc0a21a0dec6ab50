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
Random stream(const Epoch& of, std::uint64_t number) { return {of.seed, of.epoch, number, Purpose::shuffle}; }

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
        double left = point * sums_[1];
        while (node < leaves_) {
            node *= 2;
            // Never descends into a subtree of weight 0, whatever the rounding.
            if (sums_[node] <= 0 || (left >= sums_[node] && sums_[node + 1] > 0)) left -= sums_[node++];
        }
        return node - leaves_;
    }
    void take(std::size_t leaf) {
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
    for (std::size_t left = values.size(); left > 1; --left)
        std::swap(values[left - 1], values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(left)))]);
}

}  // namespace

Sampler::~Sampler() = default;

std::vector<std::vector<std::int64_t>> Sampler::batches(const Epoch& of) const {
    const std::vector<std::int64_t> all = indices(of);
    std::vector<std::vector<std::int64_t>> out;
    for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(of.batch)) {
        const std::size_t end = std::min(all.size(), at + static_cast<std::size_t>(of.batch));
        out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return out;
}

std::vector<std::int64_t> SequentialSampler::indices(const Epoch& of) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(of.examples));
    std::iota(out.begin(), out.end(), std::int64_t{0});
    return out;
}

RandomSampler::RandomSampler(const RandomSamplerOptions& options) : options_(options) {
    if (options.count.value_or(0) < 0)
        throw ValueError(fmt::format("RandomSampler: expected a count of at least 0, got {}", *options.count));
}

std::vector<std::int64_t> RandomSampler::indices(const Epoch& of) const {
    const auto count = static_cast<std::size_t>(options_.count.value_or(of.examples));
    std::vector<std::int64_t> out;
    if (options_.replacement) {
        Random random = stream(of, 1);
        while (out.size() < count) out.push_back(random.below(of.examples));
        return out;
    }
    out = shuffled_order(of.examples, of.seed, of.epoch);
    for (std::uint64_t round = 2; out.size() < count; ++round) {
        std::vector<std::int64_t> more = SequentialSampler().indices(of);
        shuffle(more, stream(of, round));
        out.insert(out.end(), more.begin(), more.end());
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
    const std::int64_t possible = std::ranges::count_if(weights_, [](double weight) { return weight > 0; });
    if (possible == 0) throw ValueError("WeightedRandomSampler: expected a weight above 0, got none");
    if (count < 0)
        throw ValueError(fmt::format("WeightedRandomSampler: expected a count of at least 0, got {}", count));
    if (!replacement && count > possible)
        throw ValueError(
            fmt::format("WeightedRandomSampler: expected, without replacement, a count of at most {}, the "
                        "number of weights above 0, got {}",
                        possible, count));
}

std::vector<std::int64_t> WeightedRandomSampler::indices(const Epoch& of) const {
    if (std::cmp_not_equal(weights_.size(), of.examples))
        throw ValueError(fmt::format("WeightedRandomSampler: expected a weight for each of {} examples, got {}",
                                     of.examples, weights_.size()));
    Random random = stream(of, 1);
    WeightTree urn(weights_);
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count_; ++i) {
        const std::size_t drawn = urn.draw(uniform53(random));
        out.push_back(static_cast<std::int64_t>(drawn));
        if (!replacement_) urn.take(drawn);
    }
    return out;
}

DistributedSampler::DistributedSampler(std::int64_t replicas, std::int64_t rank, DistributedSamplerOptions options)
    : replicas_(replicas), rank_(rank), options_(std::move(options)) {
    if (replicas < 1 || rank < 0 || rank >= replicas)
        throw ValueError(
            fmt::format("DistributedSampler: expected 0 <= rank < replicas, got rank {} of {}", rank, replicas));
}

std::vector<std::int64_t> DistributedSampler::indices(const Epoch& of) const {
    // A sampler that groups by length does so over the batches of all replicas together.
    Epoch all = of;
    all.batch *= replicas_;
    const std::vector<std::int64_t> order = options_.of        ? options_.of->indices(all)
                                            : options_.shuffle ? shuffled_order(of.examples, of.seed, of.epoch)
                                                               : SequentialSampler().indices(of);
    const auto size = static_cast<std::int64_t>(order.size());
    const std::int64_t each = options_.drop_last ? size / replicas_ : (size + replicas_ - 1) / replicas_;
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < each; ++i)
        out.push_back(order[static_cast<std::size_t>((rank_ + i * replicas_) % size)]);
    return out;
}

BucketSampler::BucketSampler(std::vector<std::int64_t> lengths, const BucketSamplerOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
    if (options.pool < 1)
        throw ValueError(fmt::format("BucketSampler: expected a pool of at least 1 batch, got {}", options.pool));
}

std::vector<std::int64_t> BucketSampler::indices(const Epoch& of) const {
    if (std::cmp_not_equal(lengths_.size(), of.examples))
        throw ValueError(fmt::format("BucketSampler: expected a length for each of {} examples, got {}", of.examples,
                                     lengths_.size()));
    const auto by_length = [this](std::int64_t a, std::int64_t b) {
        return lengths_[static_cast<std::size_t>(a)] < lengths_[static_cast<std::size_t>(b)];
    };
    if (!options_.shuffle) {
        std::vector<std::int64_t> order = SequentialSampler().indices(of);
        std::ranges::stable_sort(order, by_length);
        return order;
    }
    const std::vector<std::int64_t> order = shuffled_order(of.examples, of.seed, of.epoch);
    const auto batch = static_cast<std::size_t>(of.batch);
    const std::size_t pool = batch * static_cast<std::size_t>(std::min(options_.pool, of.examples));
    std::vector<std::vector<std::int64_t>> batches;
    std::vector<std::int64_t> last;
    for (std::size_t at = 0; at < order.size(); at += pool) {
        std::vector<std::int64_t> some(order.begin() + static_cast<std::ptrdiff_t>(at),
                                       order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), at + pool)));
        std::ranges::stable_sort(some, by_length);
        for (std::size_t first = 0; first < some.size(); first += batch) {
            const std::size_t end = std::min(some.size(), first + batch);
            std::vector<std::int64_t> one(some.begin() + static_cast<std::ptrdiff_t>(first),
                                          some.begin() + static_cast<std::ptrdiff_t>(end));
            if (one.size() == batch) batches.push_back(std::move(one));
            else last = std::move(one);
        }
    }
    shuffle(batches, stream(of, 1));
    batches.push_back(std::move(last));
    std::vector<std::int64_t> out;
    for (const auto& item : batches) out.insert(out.end(), item.begin(), item.end());
    return out;
}

FunctionSampler::FunctionSampler(Function function) : function_(std::move(function)) {
    if (!function_) throw ValueError("FunctionSampler: expected a function, got an empty one");
}

}  // namespace declivity::data
