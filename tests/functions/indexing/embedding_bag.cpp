// embedding_bag, and the options of embedding: corner cases and errors. Regular values and gradients are tested by the
// catalogue.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// The gradient with respect to a table (V, D) of a weighted sum of `call`.
Values table_gradient(const Tensor& table, const Tensor& g, const std::function<Tensor(const Tensor&)>& call) {
    const Tensor leaf = table.detach().clone().set_requires_grad();
    return values(grad({call(leaf)}, {leaf}, {.output_gradients = {g}})[0]);
}

double power_sum(const Values& x, std::size_t first, std::size_t count, double p) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i) sum += std::pow(std::abs(x[i]), p);
    return std::pow(sum, 1 / p);
}

}  // namespace

TEST_CASE("embedding_bag: mean, sum and maximum of the rows of each bag") {
    // The bags are {0, 2}, {} and {1}.
    const Tensor indices = int64_tensor({0, 2, 1}, {3}), offsets = int64_tensor({0, 2, 2}, {3}),
                 rows = tensor({1, 2, 3, 4, 5, 6}, {3, 2});
    CHECK(values(embedding_bag(indices, rows, offsets)) == Values{3, 4, 0, 0, 3, 4});
    CHECK(values(embedding_bag(indices, rows, offsets, {}, {.mode = BagMode::sum})) == Values{6, 8, 0, 0, 3, 4});
    CHECK(values(embedding_bag(indices, rows, offsets, {}, {.mode = BagMode::max})) == Values{5, 6, 0, 0, 3, 4});
}

TEST_CASE("embedding: padding_idx, scale_grad_by_freq and max_norm") {
    const Tensor indices = int64_tensor({4, 1, 2, 1, 4, 4}, {2, 3}), table = random_tensor({5, 3}, 1),
                 g = random_tensor({2, 3, 3}, 2);
    const std::vector<std::size_t> at{4, 1, 2, 1, 4, 4};
    const Values out_gradient = values(g);
    for (const bool padded : {false, true})
        for (const bool scaled : {false, true}) {
            EmbeddingParameters options{.scale_grad_by_freq = scaled};
            if (padded) options.padding_idx = -4;  // row 1
            Values expected(15, 0);
            for (std::size_t i = 0; i < 6; ++i)
                for (std::size_t d = 0; d < 3; ++d)
                    if (!padded || at[i] != 1)
                        expected[at[i] * 3 + d] +=
                            out_gradient[i * 3 + d] / (scaled ? static_cast<double>(std::ranges::count(at, at[i])) : 1);
            CHECK(values(embedding(indices, table, options)) == values(embedding(indices, table)));
            const auto call = [&](const Tensor& leaf) { return embedding(indices, leaf, options); };
            CHECK(difference(table_gradient(table, g, call), expected, {1e-6, 1e-6}) == "");
            CHECK(difference(table_gradient(
                                 table, g,
                                 [&](const Tensor& leaf) { return embedding(indices.to(DType::i32), leaf, options); }),
                             expected, {1e-6, 1e-6}) == "");
        }
    for (const double p : {2.0, 1.0, 3.0}) {
        Tensor rows = (table * 3).set_requires_grad();
        const Values before = values(rows);
        const Tensor y = embedding(indices, rows, {.max_norm = 2, .norm_type = p});
        const Values rows_after = values(rows);
        for (std::size_t row = 0; row < 5; ++row) {
            const double length = power_sum(before, 3 * row, 3, p);
            const bool is_renormalized = length > 2 && row != 0 && row != 3;
            for (std::size_t d = 3 * row; d < 3 * row + 3; ++d)
                CHECK(rows_after[d] ==
                      doctest::Approx(is_renormalized ? before[d] * 2 / length : before[d]).epsilon(1e-5));
        }
        CHECK(values(y) == values(embedding(indices, rows)));
        sum(y).backward();
        CHECK(values(rows.grad())[12] == 3);
    }
    CHECK_THROWS_WITH_AS(embedding(indices, table, {.padding_idx = 5}),
                         "embedding: expected padding_idx within 5 rows, got 5", ValueError);
    CHECK_THROWS_AS(embedding(indices, table, {.max_norm = -1}), ValueError);
    CHECK_THROWS_AS(embedding(indices, table, {.max_norm = 1, .norm_type = 0}), ValueError);
}

TEST_CASE("embedding_bag: empty bags, a last offset, padding, frequencies, all modes") {
    const std::vector<std::int64_t> index_list{1, 2, 4, 1, 0, 2, 2, 3};
    const std::vector<std::size_t> starts{0, 3, 3, 5, 8, 8}, rowwise{0, 4, 8};
    const Tensor table = random_tensor({5, 3}, 1);
    const Values all = values(table);
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
        for (const bool last : {false, true})
            for (const bool padded : {false, true})
                for (const bool fixed_size_bags : {false, true})
                    for (const bool weighted : {false, true}) {
                        if (weighted && mode != BagMode::sum) continue;
                        if (fixed_size_bags && last) continue;
                        CAPTURE(name_of(mode));
                        CAPTURE(padded);
                        CAPTURE(fixed_size_bags);
                        const Tensor indices = int64_tensor(index_list, fixed_size_bags ? Shape{2, 4} : Shape{8});
                        const Tensor weights = weighted ? random_tensor(indices.shape(), 3) : Tensor();
                        const Values factors = weighted ? values(weights) : Values(8, 1);
                        EmbeddingBagParameters options{.mode = mode, .include_last_offset = last};
                        options.scale_grad_by_freq = mode != BagMode::max;
                        if (padded) options.padding_idx = 2;
                        const auto bounds = fixed_size_bags ? rowwise : starts;
                        const std::size_t bags = fixed_size_bags ? 2 : last ? 5 : 6;
                        const Tensor g = random_tensor({static_cast<std::int64_t>(bags), 3}, 2);
                        const Values out_gradient = values(g);
                        Values expected, gradient(15, 0);
                        for (std::size_t bag = 0; bag < bags; ++bag)
                            for (std::size_t d = 0; d < 3; ++d) {
                                const std::size_t end = bag + 1 < bounds.size() ? bounds[bag + 1] : 8;
                                double sum = 0, largest = -INFINITY;
                                std::size_t count = 0, argmax = 0;
                                for (std::size_t i = bounds[bag]; i < end; ++i) {
                                    if (padded && index_list[i] == 2) continue;
                                    const double x = all[static_cast<std::size_t>(index_list[i]) * 3 + d];
                                    sum += x * factors[i], ++count;
                                    if (x > largest) largest = x, argmax = i;
                                }
                                const auto n = static_cast<double>(std::max<std::size_t>(1, count));
                                expected.push_back(count == 0             ? 0
                                                   : mode == BagMode::max ? largest
                                                   : mode == BagMode::sum ? sum
                                                                          : sum / n);
                                for (std::size_t i = bounds[bag]; i < end; ++i) {
                                    if (padded && index_list[i] == 2) continue;
                                    if (mode == BagMode::max && i != argmax) continue;
                                    const double frequency =
                                        mode == BagMode::max
                                            ? 1
                                            : static_cast<double>(std::ranges::count(index_list, index_list[i]));
                                    gradient[static_cast<std::size_t>(index_list[i]) * 3 + d] +=
                                        out_gradient[bag * 3 + d] * factors[i] / frequency /
                                        (mode == BagMode::mean ? n : 1);
                                }
                            }
                        const auto call = [&](const Tensor& leaf) {
                            const Tensor offsets = fixed_size_bags ? Tensor() : int64_tensor({0, 3, 3, 5, 8, 8}, {6});
                            return embedding_bag(indices, leaf, offsets, weights, options);
                        };
                        CHECK(difference(call(table), expected, {1e-6, 1e-6}) == "");
                        CHECK(difference(table_gradient(table, g, call), gradient, {1e-6, 1e-6}) == "");
                    }
}

TEST_CASE("embedding_bag: ties, max_norm, f16 and bf16, empty inputs, errors") {
    const Tensor table = random_tensor({5, 3}, 1), offsets = int64_tensor({0, 2}, {2}),
                 indices = int64_tensor({4, 4, 1, 0}, {4});
    // The first of equal ones gets the gradient: once, not twice.
    CHECK(table_gradient(table, ones({2, 3}), [&](const Tensor& leaf) {
              return embedding_bag(indices, leaf, offsets, {}, {.mode = BagMode::max});
          })[12] == 1);
    Tensor rows = (table * 5).set_requires_grad();
    const Tensor y = embedding_bag(indices, rows, offsets, {}, {.mode = BagMode::sum, .max_norm = 1});
    CHECK(power_sum(values(rows), 12, 3, 2) <= 1.00001);
    CHECK(power_sum(values(y), 0, 3, 2) <= 2.0001);
    for (const DType half : {DType::f16, DType::bf16})
        for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
            const Tensor reduced = embedding_bag(indices, table.to(half), offsets, {}, {.mode = mode});
            CHECK(reduced.dtype() == half);
            CHECK(difference(reduced,
                             values(embedding_bag(indices, table.to(half).to(DType::f32), offsets, {}, {.mode = mode})),
                             {0.01, 0.01}) == "");
        }
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
        CHECK(values(embedding_bag(zeros({0}, {DType::i64}), table, offsets, {}, {.mode = mode})) == Values(6, 0));
        CHECK(embedding_bag(zeros({0, 4}, {DType::i64}), table, {}, {}, {.mode = mode}).shape() == Shape{0, 3});
        CHECK(values(embedding_bag(zeros({2, 0}, {DType::i64}), table, {}, {}, {.mode = mode})) == Values(6, 0));
        CHECK(std::isnan(values(embedding_bag(int64_tensor({1, 5}, {1, 2}), table, {}, {}, {.mode = mode}))[0]));
    }
    CHECK_THROWS_WITH_AS(embedding_bag(indices, table),
                         "embedding_bag: expected offsets for indices (N), got an undefined tensor", ValueError);
    CHECK_THROWS_WITH_AS(embedding_bag(reshape(indices, {2, 2}), table, offsets),
                         "embedding_bag: expected no offsets for indices (B, L), whose rows are bags", ValueError);
    CHECK_THROWS_WITH_AS(embedding_bag(indices, table, offsets, ones({4})),
                         "embedding_bag: expected per_sample_weights only for mode sum, got mode mean", ValueError);
    CHECK_THROWS_AS(embedding_bag(indices, table, offsets, ones({3}), {.mode = BagMode::sum}), ShapeError);
    CHECK_THROWS_AS(embedding_bag(indices, table, offsets.to(DType::f32)), TypeError);
    CHECK_THROWS_AS(embedding_bag(indices, table, offsets, {}, {.mode = BagMode::max, .scale_grad_by_freq = true}),
                    ValueError);
    CHECK_THROWS_AS(embedding_bag(reshape(indices, {1, 2, 2}), table), ShapeError);
    CHECK_THROWS_AS(embedding_bag(table, table), TypeError);
}
