// Random streams for data: reproducible, independent, unbiased.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity::data;

TEST_CASE("random: a stream is Philox over (seed, epoch, index, purpose)") {
    Random random(0x1122334455667788, 3, 0x0000'0005'0000'0009, Purpose::shuffle);
    for (std::uint32_t block = 0; block < 3; ++block)
        for (const std::uint32_t word :
             declivity::philox4x32_10({block, 9, 2U << 16 | 5U, 3}, {0x55667788, 0x11223344}))
            CHECK(random.word() == word);
}

TEST_CASE("random: every part of the name selects another stream") {
    const std::uint64_t seed = 7, epoch = 2, index = 11;
    std::set<std::uint32_t> firsts;
    firsts.insert(Random(seed, epoch, index).word());
    firsts.insert(Random(seed + 1, epoch, index).word());
    firsts.insert(Random(seed + (std::uint64_t{1} << 32), epoch, index).word());
    firsts.insert(Random(seed, epoch + 1, index).word());
    firsts.insert(Random(seed, epoch, index + 1).word());
    firsts.insert(Random(seed, epoch, index + (std::uint64_t{1} << 32)).word());
    firsts.insert(Random(seed, epoch, index, Purpose::draw).word());
    CHECK(firsts.size() == 7);
    CHECK(Random(seed, epoch, index).word() == Random(seed, epoch, index).word());
}

TEST_CASE("random: moments of uniform, normal and chance") {
    Random random(1, 0, 0, Purpose::user);
    const int count = 200000;
    double sum = 0, sum_squares = 0, sum_normal = 0, sum_normal_squares = 0;
    int hits = 0;
    for (int i = 0; i < count; ++i) {
        const double x = random.uniform(-1.0F, 3.0F);
        CHECK_UNARY(x >= -1.0 && x < 3.0);
        sum += x;
        sum_squares += x * x;
        const double z = random.normal();
        sum_normal += z;
        sum_normal_squares += z * z;
        hits += random.chance(0.3F) ? 1 : 0;
    }
    // Bounds of about five standard errors.
    CHECK(std::abs(sum / count - 1.0) < 0.013);
    CHECK(std::abs(sum_squares / count - 1.0 - 16.0 / 12.0) < 0.03);
    CHECK(std::abs(sum_normal / count) < 0.012);
    CHECK(std::abs(sum_normal_squares / count - 1.0) < 0.017);
    CHECK(std::abs(hits / static_cast<double>(count) - 0.3) < 0.006);
}

TEST_CASE("random: below is uniform and within its range") {
    Random random(5, 0, 0, Purpose::user);
    std::vector<int> counts(10, 0);
    for (int i = 0; i < 100000; ++i) ++counts[static_cast<std::size_t>(random.below(10))];
    for (const int count : counts) CHECK(std::abs(count - 10000) < 500);
    CHECK(random.below(1) == 0);
    for (const std::int64_t limit : {std::int64_t{1} << 32, (std::int64_t{1} << 40) + 3, INT64_MAX}) {
        std::int64_t largest = 0;
        for (int i = 0; i < 1000; ++i) {
            const std::int64_t value = random.below(limit);
            CHECK_UNARY(value >= 0 && value < limit);
            largest = std::max(largest, value);
        }
        CHECK(largest > limit / 2);
    }
    CHECK_THROWS_AS(random.below(0), declivity::ValueError);
    CHECK_THROWS_AS(random.below(-3), declivity::ValueError);
}

TEST_CASE("shuffled_order: a permutation that depends on (seed, epoch) only") {
    for (const std::int64_t count : {0, 1, 2, 10, 1000}) {
        std::vector<std::int64_t> order = shuffled_order(count, 42, 1);
        CHECK(order == shuffled_order(count, 42, 1));
        if (count >= 10) {
            CHECK(order != shuffled_order(count, 42, 2));
            CHECK(order != shuffled_order(count, 43, 1));
        }
        std::ranges::sort(order);
        std::vector<std::int64_t> all(static_cast<std::size_t>(count));
        std::iota(all.begin(), all.end(), std::int64_t{0});
        CHECK(order == all);
    }
    // Another order here would silently change every training run with a fixed seed.
    CHECK(shuffled_order(10, 42, 1) == std::vector<std::int64_t>{0, 5, 9, 4, 1, 7, 2, 3, 6, 8});
    CHECK_THROWS_AS((void)shuffled_order(-1, 0, 0), declivity::ValueError);
}

TEST_CASE("shuffled_order: every number is equally likely at every position") {
    std::vector<int> counts(36, 0);
    const int epochs = 12000;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        const std::vector<std::int64_t> order = shuffled_order(6, 9, static_cast<std::uint64_t>(epoch));
        for (std::size_t position = 0; position < 6; ++position)
            ++counts[position * 6 + static_cast<std::size_t>(order[position])];
    }
    for (const int count : counts) CHECK(std::abs(count - epochs / 6) < 210);  // five standard errors
}
