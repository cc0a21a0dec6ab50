// Ranking losses and negative sampling: values compared with plain C++ in double, gradients, errors.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/models/ranking_loss.hpp>
#include <declivity/models/recommend.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

#include "rows.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// -log softmax of the first score.
double first_loss(const Row& scores) {
    double total = 0;
    for (const double score : scores) total += std::exp(score - scores[0]);
    return std::log(total);
}

}  // namespace

TEST_CASE("bpr_loss") {
    for (const DType dtype : floats())
        for (const Shape& shape : {Shape{5}, Shape{5, 3}})
            for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
                const Tensor a = random_tensor({5}, 1, dtype, -3, 3), b = random_tensor(shape, 2, dtype, -3, 3);
                const Row positive_scores = values(a), negative_scores = values(b);
                Row expected;
                for (std::size_t i = 0; i < negative_scores.size(); ++i)
                    expected.push_back(
                        std::log(1 + std::exp(negative_scores[i] - positive_scores[i * 5 / negative_scores.size()])));
                const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
                if (reduction == Reduction::sum) expected = {total};
                if (reduction == Reduction::mean) expected = {total / static_cast<double>(negative_scores.size())};
                CHECK(difference(models::bpr_loss(a, b, reduction), expected, tolerance(dtype, 20, 4)) == "");
                if (dtype == DType::f64)
                    CHECK(gradient_difference([&](const auto& in) { return models::bpr_loss(in[0], in[1], reduction); },
                                              {a, b}) == "");
            }
    // Large positive and negative differences.
    CHECK(values(models::bpr_loss(tensor({500, -500}, {2}), tensor({-500, 500}, {2}), Reduction::none)) ==
          Row{0, 1000});
}

TEST_CASE("in_batch_softmax_loss") {
    const Integers ids{4, 2, 4, 0, 2, 4, 9};
    for (const DType dtype : floats())
        for (const int flags : {0, 1, 2, 3})
            for (const Reduction reduction : {Reduction::mean, Reduction::none}) {
                const Tensor users = random_tensor({7, 5}, 1, dtype), items = random_tensor({7, 5}, 2, dtype),
                             log_q = random_tensor({7}, 3, dtype, -4, -1);
                models::InBatchSoftmaxOptions options{.temperature = 0.3, .reduction = reduction};
                if ((flags & 1) != 0) options.log_q = log_q;
                if ((flags & 2) != 0) options.item_ids = int64_tensor(ids, {7});
                const Row u = values(users), v = values(items), q = values(log_q);
                Row expected;
                for (std::size_t i = 0; i < 7; ++i) {
                    Row scores;
                    for (std::size_t j = 0; j < 7; ++j) {
                        if ((flags & 2) != 0 && j != i && ids[i] == ids[j]) continue;
                        const double score = product(row_of(u, static_cast<std::int64_t>(i), 5),
                                                     row_of(v, static_cast<std::int64_t>(j), 5)) /
                                                 0.3 -
                                             ((flags & 1) != 0 ? q[j] : 0);
                        scores.insert(j == i ? scores.begin() : scores.end(), score);
                    }
                    expected.push_back(first_loss(scores));
                }
                if (reduction == Reduction::mean)
                    expected = {std::accumulate(expected.begin(), expected.end(), 0.0) / 7};
                CHECK(difference(models::in_batch_softmax_loss(users, items, options), expected,
                                 tolerance(dtype, 40, 10)) == "");
                if (dtype == DType::f64)
                    CHECK(gradient_difference(
                              [&](const auto& in) { return models::in_batch_softmax_loss(in[0], in[1], options); },
                              {users, items}) == "");
            }
}

TEST_CASE("sampled_softmax_loss") {
    const Integers positive_items{4, 2, 4, 0, 5}, negative_items{1, 4, 4, 8, 0, 6, 3};
    for (const DType dtype : floats())
        for (const int flags : {0, 1, 2, 3})
            for (const Reduction reduction : {Reduction::mean, Reduction::none}) {
                const Tensor users = random_tensor({5, 3}, 1, dtype), positives = random_tensor({5, 3}, 2, dtype),
                             negatives = random_tensor({7, 3}, 3, dtype);
                const Tensor q = random_tensor({5}, 4, dtype, -4, -1), q_drawn = random_tensor({7}, 5, dtype, -4, -1);
                models::SampledSoftmaxOptions options{.temperature = 0.4, .reduction = reduction};
                if ((flags & 1) != 0) options.log_q_positive = q, options.log_q_negative = q_drawn;
                if ((flags & 2) != 0)
                    options.positive_ids = int64_tensor(positive_items, {5}),
                    options.negative_ids = int64_tensor(negative_items, {7}).to(DType::i32);
                const auto score = [&](const Tensor& items, const Tensor& log_q, std::size_t i, std::size_t j) {
                    return product(row_of(values(users), static_cast<std::int64_t>(i), 3),
                                   row_of(values(items), static_cast<std::int64_t>(j), 3)) /
                               0.4 -
                           ((flags & 1) != 0 ? values(log_q)[j] : 0);
                };
                Row expected;
                for (std::size_t i = 0; i < 5; ++i) {
                    Row scores{score(positives, q, i, i)};
                    for (std::size_t j = 0; j < 7; ++j)
                        if ((flags & 2) == 0 || positive_items[i] != negative_items[j])
                            scores.push_back(score(negatives, q_drawn, i, j));
                    expected.push_back(first_loss(scores));
                }
                if (reduction == Reduction::mean)
                    expected = {std::accumulate(expected.begin(), expected.end(), 0.0) / 5};
                CHECK(difference(models::sampled_softmax_loss(users, positives, negatives, options), expected,
                                 tolerance(dtype, 40, 10)) == "");
                if (dtype == DType::f64)
                    CHECK(
                        gradient_difference(
                            [&](const auto& in) { return models::sampled_softmax_loss(in[0], in[1], in[2], options); },
                            {users, positives, negatives}) == "");
            }
}

TEST_CASE("NegativeSampler: frequencies of sampled items") {
    const models::NegativeSampler zipf = models::NegativeSampler::log_uniform(7);
    Row expected;
    for (int k = 0; k < 7; ++k) expected.push_back(std::log((std::log(k + 2.0) - std::log(k + 1.0)) / std::log(8.0)));
    CHECK(difference(zipf.log_probability(arange(7, {.dtype = DType::i64})), expected, {1e-6, 1e-6}) == "");
    const models::NegativeSampler uniform = models::NegativeSampler::uniform(5);
    CHECK(difference(uniform.log_probability(int64_tensor({3, 0}, {1, 2})), {-std::log(5.0), -std::log(5.0)},
                     {1e-6, 0}) == "");
    CHECK(uniform.size() == 5);
    CHECK(std::isnan(values(uniform.log_probability(int64_tensor({5}, {1})))[0]));

    const std::int64_t count = small_cases() ? 200 : 20000;
    manual_seed(3);
    std::vector<double> found(7);
    for (const std::int64_t index : zipf.sample(count).to_vector<std::int64_t>()) found.at(to_size(index)) += 1;
    for (std::size_t k = 0; k < 7; ++k) {
        const double probability = std::exp(expected[k]), got = found[k] / static_cast<double>(count);
        CHECK(std::abs(got - probability) < 5 * std::sqrt(probability / static_cast<double>(count)));
    }
    const models::NegativeSampler explicit_sampler(tensor({0, 2, 0, 6}, {4}));
    for (const std::int64_t index : explicit_sampler.sample(50).to_vector<std::int64_t>())
        CHECK((index == 1 || index == 3));
    CHECK(difference(explicit_sampler.log_probability(int64_tensor({1, 3}, {2})), {std::log(0.25), std::log(0.75)},
                     {1e-6, 0}) == "");
}

TEST_CASE("sampled_softmax_loss: trains to the same result as the full softmax") {
    // Two kinds of users, each of which chooses among its own kind of items, the first ones more often.
    manual_seed(1);
    models::TwoTower model({.user = {.fields = {2}, .embedding_dim = 4, .hidden = {}},
                            .item = {.fields = {10}, .embedding_dim = 4, .hidden = {}},
                            .output_dim = 4,
                            .normalize = false});
    optim::Adam optimizer(model.parameters(), {.lr = 0.03});
    const models::NegativeSampler sampler = models::NegativeSampler::log_uniform(10);
    const Row share{0.4, 0.3, 0.15, 0.1, 0.05};
    Integers users, items;
    for (std::int64_t user = 0; user < 2; ++user)
        for (std::int64_t item = 0; item < 5; ++item)
            for (int i = 0; i < std::lround(40 * share[to_size(item)]); ++i)
                users.push_back(user), items.push_back(2 * item + user);
    const std::int64_t rows = static_cast<std::int64_t>(users.size());
    const Tensor u = int64_tensor(users, {rows, 1}), v = int64_tensor(items, {rows, 1}),
                 positive_ids = int64_tensor(items, {rows});
    for (int step = 0; step < (small_cases() ? 1 : 600); ++step) {
        optimizer.set_learning_rate(step < 300 ? 0.03 : 0.003);
        const Tensor negatives = sampler.sample(40);
        optimizer.zero_grad();
        models::sampled_softmax_loss(model.user_vectors(u), model.item_vectors(v),
                                     model.item_vectors(unsqueeze(negatives, 1)),
                                     {.log_q_positive = sampler.log_probability(positive_ids),
                                      .log_q_negative = sampler.log_probability(negatives)})
            .backward();
        optimizer.step();
    }
    if (small_cases()) return;
    const NoGrad no_grad;
    const Tensor all = model.item_vectors(unsqueeze(arange(10, {.dtype = DType::i64}), 1));
    const Row probabilities =
        values(softmax(matmul(model.user_vectors(int64_tensor({0, 1}, {2, 1})), transpose(all)), 1));
    for (std::size_t user = 0; user < 2; ++user)
        for (std::size_t item = 0; item < 10; ++item)
            CHECK(std::abs(probabilities[user * 10 + item] - (item % 2 == user ? share[item / 2] : 0)) < 0.04);
}

TEST_CASE("ranking losses: error messages") {
    using namespace models;
    const Tensor x = zeros({4, 3}), ids = zeros({4}, {.dtype = DType::i64}), log_q = zeros({4});
    CHECK(error_without_context<ShapeError>([&] {
              (void)bpr_loss(log_q, zeros({3, 4}));
          }) == "bpr_loss: expected negative (4) or (4, M), got [3, 4]");
    CHECK(error_without_context<TypeError>([&] { (void)bpr_loss(ids, ids); }).starts_with("bpr_loss: "));
    CHECK(error_without_context<ValueError>([&] {
              (void)in_batch_softmax_loss(x, Tensor());
          }).starts_with("in_batch_softmax_loss"));
    CHECK(error_without_context<ShapeError>([&] {
              (void)in_batch_softmax_loss(x, zeros({5, 3}));
          }).starts_with("in_batch_softmax_loss: expected items of shape"));
    CHECK(error_without_context<ValueError>([&] { (void)in_batch_softmax_loss(x, x, {.temperature = 0}); }) ==
          "in_batch_softmax_loss: expected a temperature above 0, got 0");
    CHECK(error_without_context<ShapeError>([&] {
              (void)in_batch_softmax_loss(x, x, {.log_q = zeros({3})});
          }).starts_with("in_batch_softmax_loss: expected log_q of shape"));
    CHECK(error_without_context<TypeError>([&] { (void)in_batch_softmax_loss(x, x, {.item_ids = log_q}); }) ==
          "in_batch_softmax_loss: expected item_ids of i64 or i32, got f32");
    CHECK(error_without_context<ShapeError>([&] {
              (void)sampled_softmax_loss(x, x, zeros({5, 2}));
          }) == "sampled_softmax_loss: expected negatives of shape (M, 3), got [5, 2]");
    CHECK(error_without_context<ValueError>([&] { (void)sampled_softmax_loss(x, x, x, {.log_q_positive = log_q}); }) ==
          "sampled_softmax_loss: expected both of log_q_positive and log_q_negative, or neither");
    CHECK(error_without_context<ShapeError>([&] {
              (void)sampled_softmax_loss(x, x, zeros({5, 3}), {.positive_ids = ids, .negative_ids = ids});
          }).starts_with("sampled_softmax_loss: expected negative_ids of shape"));
    CHECK(error_without_context<ShapeError>([&] { (void)NegativeSampler(x); }) ==
          "NegativeSampler: expected weights of shape (C), of at least 1, got [4, 3]");
    CHECK(error_without_context<ValueError>([] { (void)NegativeSampler::uniform(0); }) ==
          "NegativeSampler::uniform: expected a count of at least 1, got 0");
    CHECK(error_without_context<ValueError>([] { (void)NegativeSampler::uniform(2).sample(0); }) ==
          "NegativeSampler::sample: expected a count of at least 1, got 0");
    CHECK(error_without_context<TypeError>([&] { (void)NegativeSampler::uniform(2).log_probability(x); }) ==
          "NegativeSampler::log_probability: expected items of i64 or i32, got f32");
}
