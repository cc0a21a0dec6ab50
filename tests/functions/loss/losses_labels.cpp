// Losses of labels: labels that are ignored or out of range, class weights, images of labels; losses of single rows,
// and weights of elements.
#include <cmath>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("losses: cross_entropy and nll_loss of two rows and their labels") {
    // The softmax of the rows is 1/4, 3/4 and 1/2, 1/2.
    const Tensor logits = tensor({0, std::log(3.0), 0, 0}, {2, 2}), labels = int64_tensor({1, 0}, {2});
    CHECK(difference(cross_entropy(logits, labels, {.reduction = kNone}), {0.287682, 0.693147}, {1e-5}) == "");
    CHECK(difference(cross_entropy(logits, labels), {0.490415}, {1e-5}) == "");
    CHECK(difference(cross_entropy(logits, labels, {.ignore_index = 0}), {0.287682}, {1e-5}) == "");
    const Tensor log_probs = tensor({-0.125, -2, -1, -0.5}, {2, 2});
    CHECK(difference(nll_loss(log_probs, labels, {.reduction = kNone}), {2, 1}, {}) == "");
    CHECK(difference(nll_loss(log_probs, labels, {.reduction = kNone}, tensor({10, 1}, {2})), {2, 10}, {}) == "");
}

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
