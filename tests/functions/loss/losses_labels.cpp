// Losses of labels: labels that are ignored or out of range, class weights, images of labels.
#include <cmath>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("losses: labels that are ignored or out of range") {
    const Tensor x = log_softmax(random_tensor({4, 3}, 1), 1), weight = Tensor::from<float>({0.5, 2, 3}, {3});
    const Values a = values(x);
    const Tensor labels = int64_tensor({2, -100, 0, 1}, {4});
    CHECK(difference(nll_loss(x, labels, {.reduction = kNone}), {-a[2], 0, -a[6], -a[10]}, {1e-6}) == "");
    CHECK(difference(nll_loss(x, labels.to(DType::i32)), {-(a[2] + a[6] + a[10]) / 3}, {1e-6}) == "");
    const Values weighted_losses{-a[2] * 3, 0, -a[6] * 0.5, -a[10] * 2};
    CHECK(difference(nll_loss(x, labels, {.reduction = kNone}, weight), weighted_losses, {1e-6}) == "");
    CHECK(difference(nll_loss(x, labels, {.reduction = Reduction::sum}, weight),
                     {weighted_losses[0] + weighted_losses[2] + weighted_losses[3]}, {1e-5}) == "");
    CHECK(difference(nll_loss(x, labels, {}, weight),
                     {(weighted_losses[0] + weighted_losses[2] + weighted_losses[3]) / 5.5}, {1e-6}) == "");
    CHECK(difference(cross_entropy(x, labels, {}, weight),
                     {(weighted_losses[0] + weighted_losses[2] + weighted_losses[3]) / 5.5}, {1e-6}) == "");
    const Tensor all_ignored = int64_tensor({-100, -100, -100, -100}, {4});
    CHECK(difference(nll_loss(x, all_ignored), {kNaN}, {}) == "");
    CHECK(difference(cross_entropy(x, all_ignored, {}, weight), {kNaN}, {}) == "");
    CHECK(difference(nll_loss(x, all_ignored, {.reduction = Reduction::sum}), {0}, {}) == "");
    for (const std::int64_t wrong : {-1, 3})
        for (const bool weighs : {false, true}) {
            const Tensor invalid_labels = int64_tensor({1, wrong, 0, 2}, {4}),
                         class_weight = weighs ? weight : Tensor();
            const auto loss = [&](const Tensor& in) {
                return nll_loss(in, invalid_labels, {.reduction = kNone}, class_weight);
            };
            CHECK(std::isnan(values(loss(x))[1]));
            CHECK_FALSE(std::isnan(values(loss(x))[0]));
            CHECK(std::isnan(gradient_of(x, loss)[4]));
            CHECK(std::isnan(values(cross_entropy(x, invalid_labels, {}, class_weight))[0]));
            CHECK(std::isnan(values(multi_margin_loss(x, invalid_labels, {}, class_weight))[0]));
        }
    CHECK(
        std::isnan(values(multilabel_margin_loss(x, int64_tensor({0, 3, -1, 0, 1, 2, 0, 1, 2, 0, 1, 2}, {4, 3})))[0]));
    // Elements that are not selected may have any value.
    const Tensor special = tensor({-1, -kInfinity, -2, kNaN, kInfinity, kNaN}, {2, 3});
    CHECK(difference(nll_loss(special, int64_tensor({2, -100}, {2})), {2}, {}) == "");
    CHECK(gradient_of(special, [](const Tensor& in) {
              return nll_loss(in, int64_tensor({2, -100}, {2}));
          }) == Values{0, 0, -1, 0, 0, 0});
    for (const double value : gradient_of(special, [&](const Tensor& in) {
             return cross_entropy(in, int64_tensor({2, -100}, {2}), {.label_smoothing = 0}, weight);
         }))
        CHECK(std::isfinite(value));
}

TEST_CASE("losses: classes of images") {
    const Tensor x = random_tensor({2, 3, 5, 7}, 1), labels = randint(0, 3, {2, 5, 7}),
                 weight = random_tensor({3}, 2, DType::f32, 0.5, 2);
    const Tensor flat_logits = reshape(permute(x, {0, 2, 3, 1}), {-1, 3}), flat_labels = reshape(labels, {-1});
    for (const Tensor& w : {Tensor(), weight})
        for (const double smoothing : {0.0, 0.3})
            for (const Reduction reduction : {Reduction::mean, Reduction::sum, kNone}) {
                const CrossEntropyOptions options{
                    .reduction = reduction, .label_smoothing = smoothing, .ignore_index = 1};
                const Tensor got = cross_entropy(x, labels, options, w);
                CHECK(got.shape() == (reduction == kNone ? Shape{2, 5, 7} : Shape{}));
                CHECK(difference(got, values(cross_entropy(flat_logits, flat_labels, options, w)),
                                 tolerance(DType::f32, 70)) == "");
            }
    // Weights of 1 have no effect, and labels are probabilities of 1.
    const Tensor one_hot =
        permute((reshape(labels, {2, 5, 7, 1}) == arange(0, 3, 1, {DType::i64})).to(DType::f32), {0, 3, 1, 2});
    for (const double smoothing : {0.0, 0.3}) {
        const Values expected = values(cross_entropy(x, labels, {.label_smoothing = smoothing}));
        CHECK(difference(cross_entropy(x, labels, {.label_smoothing = smoothing}, ones({3})), expected, {1e-5}) == "");
        CHECK(difference(cross_entropy(x, one_hot, {.label_smoothing = smoothing}), expected, {1e-5}) == "");
    }
    CHECK(difference(nll_loss(log_softmax(x, 1), labels), values(cross_entropy(x, labels)), {1e-5}) == "");
    CHECK(nll_loss(x, labels, {.reduction = kNone}).shape() == Shape{2, 5, 7});
    CHECK(cross_entropy(zeros({0, 3, 5}), zeros({0, 5}, {DType::i64}), {.reduction = kNone}).shape() == Shape{0, 5});
}
