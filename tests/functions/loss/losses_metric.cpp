// Losses of margins and of distances between vectors.
#include <algorithm>
#include <cmath>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("losses: margins") {
    // The example of PyTorch's documentation.
    const Tensor x = tensor({0.1, 0.2, 0.4, 0.8}, {1, 4});
    CHECK(multilabel_margin_loss(x, int64_tensor({3, 0, -1, 1}, {1, 4})).item<float>() == doctest::Approx(0.85));
    CHECK(multilabel_margin_loss(x, int64_tensor({-1, 0, 1, 2}, {1, 4})).item<float>() == 0);
    CHECK(multilabel_margin_loss(x, int64_tensor({3, 2, 1, 0}, {1, 4})).item<float>() == 0);
    // A repeated label counts twice.
    CHECK(multilabel_margin_loss(x, int64_tensor({3, 3, -1, 0}, {1, 4}).to(DType::i32)).item<float>() ==
          doctest::Approx(2 * (0.3 + 0.4 + 0.6) / 4));
    CHECK(multilabel_margin_loss(zeros({0, 3}), zeros({0, 3}, {DType::i64}), kNone).shape() == Shape{0});
    CHECK(multi_margin_loss(x, int64_tensor({3}, {1})).item<float>() == doctest::Approx((0.3 + 0.4 + 0.6) / 4));
    CHECK(multi_margin_loss(x, int64_tensor({3}, {1}), {.p = 2, .margin = 0.5}).item<float>() ==
          doctest::Approx(0.01 / 4));

    const Tensor a = tensor({1, -3, 0.5}, {3}), neither = tensor({1, -1, 0}, {3});
    CHECK(difference(hinge_embedding_loss(a, neither, 1, kNone), {1, 4, 1}, {1e-6}) == "");
    // PyTorch's clamp_min: a loss of exactly 0 has no gradient.
    CHECK(gradient_of(ones({2}), [](const Tensor& in) {
              return margin_ranking_loss(in, ones({2}), tensor({1, -1}, {2}), 0, kNone);
          }) == Values{0, 0});
    CHECK(difference(margin_ranking_loss(a, zeros({3}), tensor({1, 1, -1}, {3}), 0.25, kNone), {0, 3.25, 0.75},
                     {1e-6}) == "");
}

TEST_CASE("losses: distances") {
    const Tensor x = random_tensor({5, 3, 7}, 1), y = random_tensor({3, 7}, 2), z = random_tensor({7}, 3);
    const Values a = values(x), b = values(y), c = values(z);
    for (const double p : {0.5, 1.0, 2.0, 3.0, kInfinity}) {
        Values expected;
        for (std::size_t row = 0; row < 15; ++row) {
            double total = 0, largest = 0;
            for (std::size_t k = 0; k < 7; ++k) {
                const double d = std::abs(a[row * 7 + k] - b[row % 3 * 7 + k] + 1e-6);
                total += std::pow(d, p);
                largest = std::max(largest, d);
            }
            expected.push_back(std::isinf(p) ? largest : std::pow(total, 1 / p));
        }
        CAPTURE(p);
        CHECK(difference(pairwise_distance(x, y, p), expected, {1e-5, 1e-5}) == "");
        CHECK(pairwise_distance(x, z, p, 1e-6, true).shape() == Shape{5, 3, 1});
        // No gradient at a distance of 0, nor for unused elements.
        CHECK(gradient_of(zeros({2, 3}), [&](const Tensor& in) {
                  return pairwise_distance(in, zeros({2, 3}), p, 0);
              }) == Values(6, 0));
        for (const double value : gradient_of(
                 tensor({0, 1, 2}, {1, 3}), [&](const Tensor& in) { return pairwise_distance(in, zeros({3}), p, 0); }))
            CHECK(std::isfinite(value));
    }
    Values cosines;
    for (std::size_t n = 0; n < 5; ++n)
        for (std::size_t k = 0; k < 7; ++k) {
            double both = 0, first = 0, second = 0;
            for (std::size_t row = 0; row < 3; ++row) {
                const double u = a[(n * 3 + row) * 7 + k], v = b[row * 7 + k];
                both += u * v;
                first += u * u;
                second += v * v;
            }
            cosines.push_back(both / std::sqrt(first * second));
        }
    CHECK(difference(cosine_similarity(x, y), cosines, {1e-5}) == "");
    CHECK(difference(cosine_similarity(x, y, -2), cosines, {1e-5}) == "");
    CHECK(cosine_similarity(x, z, -1).shape() == Shape{5, 3});
    // For zero vectors: 0, with the gradient x2 / (eps |x2|).
    const Tensor zero_input = zeros({1, 2}), some = tensor({3, 4}, {1, 2});
    CHECK(difference(cosine_similarity(zero_input, some, 1, 0.5), {0}, {}) == "");
    CHECK(difference(gradient_of(zero_input, [&](const Tensor& in) { return cosine_similarity(in, some, 1, 0.5); }),
                     {1.2, 1.6}, {1e-6}) == "");
    CHECK(difference(gradient_of(some, [&](const Tensor& in) { return cosine_similarity(in, zero_input, 1, 0.5); }),
                     {0, 0}, {}) == "");
    CHECK(difference(cosine_embedding_loss(zero_input, some, ones({1})), {1}, {1e-6}) == "");
    CHECK(difference(cosine_embedding_loss(z, -z, full({}, -1)), {0}, {1e-6}) == "");
    CHECK(difference(cosine_embedding_loss(z, z, full({}, -1), 0.25), {0.75}, {1e-5}) == "");
    CHECK(difference(triplet_margin_loss(some, zero_input, zero_input, {.margin = 0.5}), {0.5}, {1e-6}) == "");
    CHECK(difference(triplet_margin_loss(some, zero_input, some, {.margin = 0.5, .p = 1}), {7.5}, {1e-5}) == "");
    CHECK(difference(triplet_margin_loss(z, z, 2 * z, {.margin = 1e-3}), {0}, {}) == "");
    // A single pair has no negatives.
    CHECK(difference(info_nce(some, some), {0}, {1e-6}) == "");
}
