// Samplers compared with plain C++; the order depends on (seed, epoch) only.
#include <declivity/data/sampler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <declivity/data/loader.hpp>
#include <declivity/data/random.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::data;

namespace {

using Indices = std::vector<std::int64_t>;

Indices sorted(Indices indices) {
    std::sort(indices.begin(), indices.end());
    return indices;
}

Indices up_to(std::int64_t count) {
    Indices out(static_cast<std::size_t>(count));
    std::iota(out.begin(), out.end(), std::int64_t{0});
    return out;
}

void depends_on_seed_and_epoch(const Sampler& sampler, std::int64_t examples) {
    const auto order = [&](std::uint64_t seed, std::uint64_t epoch) {
        return sampler.indices({.examples = examples, .batch = 4, .seed = seed, .epoch = epoch});
    };
    const Indices first = order(1, 2);
    CHECK(order(1, 3) != first);
    CHECK(order(2, 2) != first);
    CHECK(order(1, 2) == first);
}

/// Example i is the number i.
TensorDataset number_dataset(std::int64_t count) {
    std::vector<std::pair<std::string, io::HostArray>> arrays;
    arrays.emplace_back("number", io::HostArray::of({count}, up_to(count)));
    return TensorDataset(std::move(arrays));
}

std::vector<Indices> batches_of(Loader& loader, std::uint64_t epoch, std::int64_t first = 0) {
    std::vector<Indices> out;
    for (const Batch& batch : loader.epoch(epoch, first)) out.push_back(batch[0].to_vector<std::int64_t>());
    return out;
}

}  // namespace

TEST_CASE("sampler: sequential and random orders") {
    CHECK(SequentialSampler().indices({.examples = 7}) == up_to(7));
    const RandomSampler random;
    CHECK(random.indices({.examples = 30, .seed = 5, .epoch = 3}) == shuffled_order(30, 5, 3));
    depends_on_seed_and_epoch(random, 30);
    const Indices oversampled = RandomSampler({.count = 25}).indices({.examples = 10, .seed = 1, .epoch = 1});
    REQUIRE(oversampled.size() == 25);
    for (const std::size_t round : {0U, 10U})
        CHECK(sorted({oversampled.begin() + static_cast<std::ptrdiff_t>(round),
                      oversampled.begin() + static_cast<std::ptrdiff_t>(round) + 10}) == up_to(10));
    CHECK(!std::equal(oversampled.begin(), oversampled.begin() + 10, oversampled.begin() + 10));
    const RandomSampler replacement_sampler({.replacement = true, .count = 20000});
    depends_on_seed_and_epoch(replacement_sampler, 10);
    std::map<std::int64_t, int> counts;
    for (const std::int64_t index : replacement_sampler.indices({.examples = 10, .seed = 3})) ++counts[index];
    CHECK(counts.size() == 10);
    for (const auto& [index, count] : counts) CHECK(std::abs(count - 2000) < 5 * std::sqrt(2000 * 0.9));
    CHECK_THROWS_AS(RandomSampler({.count = -1}), ValueError);
}

TEST_CASE("sampler: weights are probabilities") {
    const std::vector<double> weights{3, 0, 1, 0.5, 0, 5.5, 0};
    const WeightedRandomSampler weighted(weights, 50000);
    depends_on_seed_and_epoch(weighted, 7);
    std::array<double, 7> counts{};
    for (const std::int64_t index : weighted.indices({.examples = 7, .seed = 3}))
        ++counts[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < 7; ++i) {
        const double p = weights[i] / 10, expected = 50000 * p;
        CHECK(std::abs(counts[i] - expected) <= 5 * std::sqrt(expected * (1 - p)));
    }
    // Without replacement the first is sampled as above, the second from the remaining ones.
    const WeightedRandomSampler distinct_sampler(weights, 4, false);
    std::array<double, 7> first{}, second{};
    for (std::uint64_t epoch = 0; epoch < 20000; ++epoch) {
        const Indices sampled = distinct_sampler.indices({.examples = 7, .seed = 1, .epoch = epoch});
        REQUIRE(sorted(sampled) == Indices{0, 2, 3, 5});
        ++first[static_cast<std::size_t>(sampled[0])];
        ++second[static_cast<std::size_t>(sampled[1])];
    }
    for (std::size_t i = 0; i < 7; ++i) {
        double p = 0;
        for (std::size_t k = 0; k < 7; ++k)
            if (k != i) p += weights[k] / 10 * weights[i] / (10 - weights[k]);
        CHECK(std::abs(first[i] - 2000 * weights[i]) <= 5 * std::sqrt(20000 * 0.25));
        CHECK(std::abs(second[i] - 20000 * p) <= 5 * std::sqrt(20000 * 0.25));
    }
    CHECK_THROWS_AS((void)weighted.indices({.examples = 6}), ValueError);
    CHECK_THROWS_AS(WeightedRandomSampler({1, -1}, 1), ValueError);
    CHECK_THROWS_AS(WeightedRandomSampler({1, NAN}, 1), ValueError);
    CHECK_THROWS_AS(WeightedRandomSampler({0, 0}, 1), ValueError);
    CHECK_THROWS_AS(WeightedRandomSampler({1, 0, 1}, 3, false), ValueError);
    CHECK_THROWS_AS(WeightedRandomSampler({1}, -1), ValueError);
}

TEST_CASE("sampler: shards for several processes") {
    for (const std::int64_t replicas : {1, 3, 4})
        for (const bool drops_last : {false, true})
            for (const std::int64_t examples : {12, 13, 2}) {
                Indices all;
                const std::int64_t per_replica =
                    drops_last ? examples / replicas : (examples + replicas - 1) / replicas;
                const Indices order = shuffled_order(examples, 7, 2);
                for (std::int64_t rank = 0; rank < replicas; ++rank) {
                    const Indices own_indices = DistributedSampler(replicas, rank, {.drop_last = drops_last})
                                                    .indices({.examples = examples, .seed = 7, .epoch = 2});
                    REQUIRE(std::cmp_equal(own_indices.size(), per_replica));
                    for (std::int64_t i = 0; i < per_replica; ++i)
                        CHECK(own_indices[static_cast<std::size_t>(i)] ==
                              order[static_cast<std::size_t>((rank + i * replicas) % examples)]);
                    all.insert(all.end(), own_indices.begin(), own_indices.end());
                }
                const std::set<std::int64_t> seen(all.begin(), all.end());
                CHECK(std::cmp_equal(seen.size(), drops_last ? per_replica * replicas : examples));
            }
    CHECK(DistributedSampler(2, 1, {.shuffle = false}).indices({.examples = 5}) == Indices{1, 3, 0});
    const auto reversed = std::make_shared<FunctionSampler>([](const Epoch& position) {
        Indices out = up_to(position.examples);
        std::reverse(out.begin(), out.end());
        return out;
    });
    CHECK(DistributedSampler(2, 0, {.of = reversed}).indices({.examples = 6}) == Indices{5, 3, 1});
    CHECK_THROWS_AS(DistributedSampler(2, 2), ValueError);
    CHECK_THROWS_AS(DistributedSampler(0, 0), ValueError);
    CHECK_THROWS_AS(DistributedSampler(2, -1), ValueError);
}

TEST_CASE("sampler: batches of similar length") {
    Indices lengths;
    Random random(1, 0, 0, Purpose::user);
    for (int i = 0; i < 1003; ++i) lengths.push_back(1 + random.below(200));
    const auto padding_of = [&](const Sampler& sampler) {  // positions of padding
        std::int64_t sum = 0;
        for (const Indices& batch : sampler.batches({.examples = 1003, .batch = 8, .seed = 2, .epoch = 1})) {
            std::int64_t max_padding = 0;
            for (const std::int64_t index : batch)
                max_padding = std::max(max_padding, lengths[static_cast<std::size_t>(index)]);
            for (const std::int64_t index : batch) sum += max_padding - lengths[static_cast<std::size_t>(index)];
        }
        return sum;
    };
    const BucketSampler buckets(lengths, {.pool = 10});
    const Epoch epoch{.examples = 1003, .batch = 8, .seed = 2, .epoch = 1};
    CHECK(sorted(buckets.indices(epoch)) == up_to(1003));
    depends_on_seed_and_epoch(buckets, 1003);
    const auto batches = buckets.batches(epoch);
    for (std::size_t i = 0; i + 1 < batches.size(); ++i) CHECK(batches[i].size() == 8);
    CHECK(batches.back().size() == 3);
    CHECK(padding_of(buckets) * 4 < padding_of(RandomSampler()));
    CHECK(padding_of(BucketSampler(lengths, {.pool = 1000})) < padding_of(buckets));
    const Indices in_order = BucketSampler(lengths, {.shuffle = false}).indices(epoch);
    for (std::size_t i = 1; i < in_order.size(); ++i)
        CHECK(lengths[static_cast<std::size_t>(in_order[i - 1])] <= lengths[static_cast<std::size_t>(in_order[i])]);
    CHECK_THROWS_AS((void)buckets.indices({.examples = 10}), ValueError);
    CHECK_THROWS_AS(BucketSampler(lengths, {.pool = 0}), ValueError);
}

TEST_CASE("sampler: a loader follows it, also from the middle of an epoch and with any number of threads") {
    /// Batches of 1, 2, 3, ... in its own order, with a different number of batches in each epoch.
    struct Growing : Sampler {
        [[nodiscard]] Indices indices(const Epoch& position) const override {
            return shuffled_order(position.examples, position.seed, position.epoch);
        }
        [[nodiscard]] std::vector<Indices> batches(const Epoch& position) const override {
            const Indices all = indices(position);
            std::vector<Indices> out;
            for (std::size_t at = 0, size = 1 + position.epoch; at + size <= all.size(); at += size++)
                out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                                 all.begin() + static_cast<std::ptrdiff_t>(at + size));
            return out;
        }
    };
    const auto set = number_dataset(40);
    const std::vector<std::shared_ptr<const Sampler>> samplers{
        std::make_shared<RandomSampler>(RandomSamplerOptions{.replacement = true}),
        std::make_shared<WeightedRandomSampler>(std::vector<double>(40, 0.25), 30),
        std::make_shared<DistributedSampler>(3, 1),
        std::make_shared<BucketSampler>(Indices(40, 5)),
        std::make_shared<FunctionSampler>([](const Epoch& position) { return Indices(position.epoch + 5, 3); }),
        std::make_shared<Growing>()};
    for (const auto& sampler : samplers) {
        Loader loader(set, {.batch = 4, .seed = 8, .sampler = sampler});
        Loader threaded(set, {.batch = 4, .seed = 8, .sampler = sampler, .threads = 3, .ahead = 4});
        for (const std::uint64_t epoch : {0, 2}) {
            const auto expected = sampler->batches({.examples = 40, .batch = 4, .seed = 8, .epoch = epoch});
            CHECK(batches_of(loader, epoch) == expected);
            CHECK(std::cmp_equal(loader.batches(), expected.size()));
            CHECK(batches_of(threaded, epoch, 1) == std::vector<Indices>(expected.begin() + 1, expected.end()));
        }
    }
    const auto wrong = [&](std::int64_t index) {
        Loader(set, {.sampler = std::make_shared<FunctionSampler>([index](const Epoch&) {
                         return Indices{0, index};
                     })})
            .start(0);
    };
    CHECK_THROWS_WITH_AS(wrong(40), "Loader: expected indices in [0, 40) from the sampler, got 40", ValueError);
    CHECK_THROWS_AS(wrong(-1), ValueError);
    CHECK_THROWS_AS(FunctionSampler({}), ValueError);
    CHECK_NOTHROW(wrong(39));
}
