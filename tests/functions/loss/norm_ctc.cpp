// Group and instance normalisation, embeddings with options, embedding bags, pairwise distances, losses of single rows:
// corner cases, and their errors. Their regular values and gradients are tested by the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
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
Values gradient_of(const Tensor& table, const Tensor& g, const std::function<Tensor(const Tensor&)>& call) {
    const Tensor leaf = table.detach().clone().set_requires_grad();
    return values(grad({call(leaf)}, {leaf}, {.output_gradients = {g}})[0]);
}

double power_sum(const Values& x, std::size_t first, std::size_t count, double p) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i) sum += std::pow(std::abs(x[i]), p);
    return std::pow(sum, 1 / p);
}

}  // namespace

TEST_CASE("group_norm, instance_norm: equivalent calls, f16 and bf16, empty inputs, errors") {
    const Tensor x = random_tensor({2, 6, 5, 3}, 1, DType::f32, 2, 5), weight = random_tensor({6}, 2),
                 bias = random_tensor({6}, 3);
    const Tolerance allowed{1e-5, 1e-5};
    CHECK(difference(group_norm(x, 6, weight, bias), values(instance_norm(x, weight, bias)), allowed) == "");
    CHECK(difference(group_norm(x, 1), values(layer_norm(x, {6, 5, 3})), allowed) == "");
    CHECK(difference(instance_norm(slice(x, 0, 1, 2), weight, bias),
                     values(batch_norm(slice(x, 0, 1, 2), weight, bias, {}, {})), allowed) == "");
    for (const DType half : {DType::f16, DType::bf16}) {
        const Tensor reduced = group_norm(x.to(half), 2, weight.to(half), bias.to(half));
        CHECK(reduced.dtype() == half);
        CHECK(difference(reduced,
                         values(group_norm(x.to(half).to(DType::f32), 2, weight.to(half).to(DType::f32),
                                           bias.to(half).to(DType::f32))),
                         {0.01, 0.01}) == "");
    }
    CHECK(group_norm(zeros({0, 6, 5}), 2, weight, bias).shape() == Shape{0, 6, 5});
    CHECK(group_norm(zeros({2, 6, 0}), 2).shape() == Shape{2, 6, 0});
    CHECK(group_norm(random_tensor({4, 6}, 4), 3).shape() == Shape{4, 6});
    CHECK_THROWS_WITH_AS(group_norm(x, 4), "group_norm: expected num_groups that divide the 6 channels of x, got 4",
                         ValueError);
    CHECK_THROWS_AS(group_norm(x, 0), ValueError);
    CHECK_THROWS_WITH_AS(group_norm(random_tensor({6}, 1), 2),
                         "group_norm: expected at least 2 axes (N, C, ...) as x, got [6]", ShapeError);
    CHECK_THROWS_AS(group_norm(x, 2, random_tensor({5}, 1)), ShapeError);
    CHECK_THROWS_AS(group_norm(x, 2, weight.to(DType::i32)), TypeError);
    CHECK_THROWS_AS(group_norm(x, 2, {}, {}, -1), ValueError);
    CHECK_THROWS_WITH_AS(instance_norm(random_tensor({4, 6, 1}, 1)),
                         "instance_norm: expected more than one element per channel in x (N, C, ...), got [4, 6, 1]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(instance_norm(x, {}, {}, {}, {}, {.use_input_stats = false}),
                         doctest::Contains("instance_norm: expected running statistics"), ValueError);
    CHECK_THROWS_AS(instance_norm(x, {}, {}, zeros({5}), ones({5})), ShapeError);
    CHECK_THROWS_AS(instance_norm(x, {}, {}, {}, {}, {.momentum = 2}), ValueError);
}

TEST_CASE("instance_norm: running statistics are the mean over the samples") {
    const Tensor x = random_tensor({3, 2, 4, 2}, 1, DType::f32, 1, 4);
    const Values in = values(x);
    Tensor mean = random_tensor({2}, 2), var = random_tensor({2}, 3);
    Values means = values(mean), vars = values(var);
    for (std::size_t c = 0; c < 2; ++c) {
        double batch_mean = 0, batch_variance = 0;
        for (std::size_t n = 0; n < 3; ++n) {
            double sample_mean = 0, squares = 0;
            for (std::size_t i = 0; i < 8; ++i) sample_mean += in[(n * 2 + c) * 8 + i] / 8;
            for (std::size_t i = 0; i < 8; ++i) squares += std::pow(in[(n * 2 + c) * 8 + i] - sample_mean, 2) / 7;
            batch_mean += sample_mean / 3, batch_variance += squares / 3;
        }
        means[c] = 0.75 * means[c] + 0.25 * batch_mean;
        vars[c] = 0.75 * vars[c] + 0.25 * batch_variance;
    }
    const auto call = [&](const Tensor& in_x) { return instance_norm(in_x, {}, {}, mean, var, {.momentum = 0.25}); };
    CHECK(values(call(x)) == values(instance_norm(x)));
    CHECK(difference(mean, means, {1e-6, 1e-6}) == "");
    CHECK(difference(var, vars, {1e-6, 1e-6}) == "");
    // Recomputation in a checkpoint does not count twice.
    const Tensor before = mean.clone(), leaf = x.clone().set_requires_grad();
    sum(square(checkpoint(call, leaf))).backward();
    Tensor updated_mean = before.clone(), other = var.clone();
    (void)instance_norm(x, {}, {}, updated_mean, other, {.momentum = 0.25});
    CHECK(values(mean) == values(updated_mean));
    CHECK(values(mean) != values(before));
    // Evaluation matches batch_norm.
    CHECK(difference(instance_norm(x, {}, {}, mean, var, {.use_input_stats = false}),
                     values((x - reshape(mean, {2, 1, 1})) * rsqrt(reshape(var, {2, 1, 1}) + 1e-5)),
                     {1e-5, 1e-5}) == "");
}

TEST_CASE("local_response_norm, normalize, channel_shuffle: empty inputs, f16 and bf16, errors") {
    const Tensor x = random_tensor({2, 5, 3}, 1);
    CHECK(local_response_norm(zeros({0, 5, 3}), 3).shape() == Shape{0, 5, 3});
    CHECK(difference(local_response_norm(x, 1, 0, 0.5, 4), values(x * 0.5), {1e-6, 1e-6}) == "");
    CHECK_THROWS_WITH_AS(local_response_norm(x, 0), "local_response_norm: expected a size of at least 1, got 0",
                         ValueError);
    CHECK_THROWS_AS(local_response_norm(zeros({3}), 1), ShapeError);
    CHECK_THROWS_AS(local_response_norm(x.to(DType::i32), 1), TypeError);

    // Zero vectors, and their gradient.
    const Tensor nothing = zeros({2, 3}).set_requires_grad();
    const Tensor y = normalize(nothing);
    CHECK(values(y) == Values(6, 0));
    sum(y).backward();
    for (const double value : values(nothing.grad())) CHECK(value == doctest::Approx(1e12));
    CHECK(values(normalize(full({}, -3), 2, 0)) == Values{-1});
    // Squares that overflow f16.
    CHECK(difference(normalize(full({1, 4}, 30000).to(DType::f16)), Values(4, 0.5), {1e-3, 1e-3}) == "");
    CHECK_THROWS_AS(normalize(x, 2, 3), ShapeError);
    CHECK_THROWS_WITH_AS(normalize(x, 2, 1, -1), "normalize: expected an eps of at least 0, got -1", ValueError);
    CHECK_THROWS_AS(normalize(x.to(DType::i32)), TypeError);

    const Tensor indices = int64_tensor({0, 1, 2, 3, 4, 5}, {1, 6});
    CHECK(values(channel_shuffle(indices, 2)) == Values{0, 3, 1, 4, 2, 5});
    CHECK(channel_shuffle(zeros({0, 6, 2}), 3).shape() == Shape{0, 6, 2});
    CHECK_THROWS_WITH_AS(channel_shuffle(indices, 4),
                         "channel_shuffle: expected groups that divide the 6 channels of x, got 4", ValueError);
    CHECK_THROWS_AS(channel_shuffle(zeros({6}), 2), ShapeError);
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
            CHECK(difference(gradient_of(table, g, call), expected, {1e-6, 1e-6}) == "");
            CHECK(difference(
                      gradient_of(table, g,
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
                        CHECK(difference(gradient_of(table, g, call), gradient, {1e-6, 1e-6}) == "");
                    }
}

TEST_CASE("embedding_bag: ties, max_norm, f16 and bf16, empty inputs, errors") {
    const Tensor table = random_tensor({5, 3}, 1), offsets = int64_tensor({0, 2}, {2}),
                 indices = int64_tensor({4, 4, 1, 0}, {4});
    // The first of equal ones gets the gradient: once, not twice.
    CHECK(gradient_of(table, ones({2, 3}), [&](const Tensor& leaf) {
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

TEST_CASE("cdist, pdist, bilinear: equal rows, p of 0, empty inputs, errors") {
    const Tensor x = tensor({1, 2, 1, 2, 4, -2}, {3, 2}).set_requires_grad();
    CHECK(values(cdist(x, x, 0)) == Values{0, 0, 2, 0, 0, 2, 2, 2, 0});
    CHECK(values(pdist(x)) == Values{0, 5, 5});
    CHECK(values(pdist(x, 1)) == Values{0, 7, 7});
    for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
        const Tensor gradient = grad({sum(cdist(x, x.detach(), p))}, {x})[0];
        for (const double value : values(gradient)) CHECK(std::isfinite(value));
        CHECK(values(slice(gradient, 0, 0, 1)) == values(slice(gradient, 0, 1, 2)));
    }
    CHECK(cdist(zeros({0, 3}), zeros({4, 3})).shape() == Shape{0, 4});
    CHECK(values(cdist(zeros({2, 0}), zeros({1, 0}))) == Values{0, 0});
    CHECK(cdist(zeros({2, 1, 3, 2}), zeros({4, 5, 2})).shape() == Shape{2, 4, 3, 5});
    CHECK(pdist(zeros({1, 3})).shape() == Shape{0});
    CHECK(pdist(zeros({0, 3})).shape() == Shape{0});
    CHECK(values(pdist(zeros({3, 0}))) == Values{0, 0, 0});
    CHECK_THROWS_WITH_AS(cdist(x, zeros({3, 3})),
                         "cdist: expected x1 of shape (..., P, M) and x2 of shape (..., R, M), got [3, 2] and [3, 3]",
                         ShapeError);
    CHECK_THROWS_AS(cdist(zeros({2, 3, 2}), zeros({3, 3, 2})), ShapeError);
    CHECK_THROWS_WITH_AS(cdist(x, x, -1), "cdist: expected p of at least 0, got -1", ValueError);
    CHECK_THROWS_AS(pdist(zeros({3})), ShapeError);
    CHECK_THROWS_AS(cdist(x.to(DType::i32), x), TypeError);

    const Tensor weight = random_tensor({4, 2, 3}, 1);
    CHECK(bilinear(zeros({2}), zeros({3}), weight).shape() == Shape{4});
    CHECK(bilinear(zeros({0, 2}), zeros({0, 3}), weight, zeros({4})).shape() == Shape{0, 4});
    CHECK_THROWS_WITH_AS(
        bilinear(zeros({5, 2}), zeros({4, 3}), weight),
        "bilinear: expected x1 of shape (..., 2) and x2 of shape (..., 3) with the same batch axes, got [5, 2] and "
        "[4, 3]",
        ShapeError);
    CHECK_THROWS_AS(bilinear(zeros({5, 2}), zeros({5, 3}), weight, zeros({3})), ShapeError);
    CHECK_THROWS_AS(bilinear(zeros({5, 2}), zeros({5, 3}), zeros({4, 2})), ShapeError);
}

TEST_CASE("losses of one row of classes; weights as numbers") {
    const Tensor x = random_tensor({1, 5}, 1), row = select(x, 0, 0), label = int64_tensor({2}, {1}),
                 row_label = int64_tensor({2}, {}), weight = random_tensor({5}, 2, DType::f32, 0.5, 2),
                 share = random_tensor({1, 5}, 3, DType::f32, 0, 1);
    for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none}) {
        const auto same = [](const Tensor& got, const Tensor& expected) {
            CHECK(got.shape() == Shape{});
            CHECK(difference(got, values(expected), {1e-6, 1e-6}) == "");
        };
        same(nll_loss(row, row_label, {.reduction = r}, weight), nll_loss(x, label, {.reduction = r}, weight));
        same(cross_entropy(row, row_label, {.reduction = r, .label_smoothing = 0.1}, weight),
             cross_entropy(x, label, {.reduction = r, .label_smoothing = 0.1}, weight));
        same(cross_entropy(row, select(share, 0, 0), {.reduction = r}), cross_entropy(x, share, {.reduction = r}));
        same(multi_margin_loss(row, row_label, {.p = 2, .reduction = r}, weight),
             multi_margin_loss(x, label, {.p = 2, .reduction = r}, weight));
        const Tensor labels = int64_tensor({3, 1, -1, 0, 0}, {1, 5});
        same(multilabel_margin_loss(row, select(labels, 0, 0), r), multilabel_margin_loss(x, labels, r));
    }
    const Tensor target = random_tensor({1, 5}, 4), weight_input = random_tensor({1, 5}, 5, DType::f32, 0.5, 2);
    for (const DType dtype : {DType::f32, DType::f16}) {
        const Values a = values(x.to(dtype)), b = values(target.to(dtype)), w = values(weight_input.to(dtype));
        double squares = 0;
        for (std::size_t i = 0; i < 5; ++i) squares += (a[i] - b[i]) * (a[i] - b[i]) * w[i];
        CHECK(difference(mse_loss(x.to(dtype), target.to(dtype), Reduction::sum, weight_input.to(dtype)), {squares},
                         {1e-3, 1e-3}) == "");
    }
    CHECK_THROWS_AS(mse_loss(x, target, Reduction::mean, ones({5})), ShapeError);
    CHECK_THROWS_AS(l1_loss(x, target, Reduction::mean, ones({5})), ShapeError);
    CHECK_THROWS_AS(huber_loss(x, target, Reduction::mean, 1, ones({5})), ShapeError);
    CHECK_THROWS_AS(nll_loss(row, label), ShapeError);
    CHECK_THROWS_AS(cross_entropy(row, label), ShapeError);
    CHECK_THROWS_AS(multilabel_margin_loss(row, row_label), ShapeError);
    CHECK_THROWS_AS(triplet_margin_with_distance_loss(x, target, target, {.margin = 0}), ValueError);
    CHECK_THROWS_AS(triplet_margin_with_distance_loss(x, target, row), ShapeError);
    CHECK(difference(triplet_margin_with_distance_loss(x, target, weight_input),
                     values(triplet_margin_loss(x, target, weight_input)), {1e-6, 1e-6}) == "");
}
