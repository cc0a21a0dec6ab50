// Corner cases of losses, and their errors. Their regular values and gradients are tested by the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/references.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;
using catalogue::BoxesReference;
using catalogue::softplus_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr auto kNone = Reduction::none;

Tensor int64_tensor(const std::vector<std::int64_t>& elements, const Shape& shape) {
    return Tensor::from<std::int64_t>(elements, shape);
}

/// The gradient with respect to x of the sum of `loss`.
Values gradient_of(const Tensor& x, const std::function<Tensor(const Tensor&)>& loss) {
    Tensor leaf = x.detach().clone();
    leaf.set_requires_grad();
    sum(loss(leaf)).backward();
    return values(leaf.grad());
}

std::string error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const ShapeError& error) {
        return std::string("ShapeError ") + error.what();
    } catch (const TypeError& error) {
        return std::string("TypeError ") + error.what();
    } catch (const ValueError& error) {
        return std::string("ValueError ") + error.what();
    }
    return "no error";
}

/// Checks that mean and sum match the unreduced losses.
void check_reductions(const std::string& name, const std::function<Tensor(Reduction)>& call) {
    CAPTURE(name);
    const Tensor losses = call(kNone);
    double total = 0;
    for (const double value : values(losses)) total += value;
    const double count = static_cast<double>(losses.numel());
    const Tolerance allowed = tolerance(losses.dtype(), count, 8);
    CHECK(difference(call(Reduction::sum), {total}, allowed) == "");
    CHECK(difference(call(Reduction::mean), {total / count}, allowed) == "");
}

}  // namespace

TEST_CASE("losses: mean and sum of the unreduced losses") {
    for (const Shape& shape : {Shape{1, 1}, Shape{37, 3}, Shape{3, 129}}) {
        const Tensor x = random_tensor(shape, 1), y = random_tensor(shape, 2), z = random_tensor(shape, 3),
                     share = random_tensor(shape, 4, DType::f32, 0.1, 0.9),
                     sign = where(random_tensor(shape, 5) > 0, 1, -1), row_sign = select(sign, 1, 0),
                     labels = int64_tensor(std::vector<std::int64_t>(static_cast<std::size_t>(shape[0])), {shape[0]});
        check_reductions("l1_loss", [&](Reduction r) { return l1_loss(x, y, r); });
        check_reductions("smooth_l1_loss", [&](Reduction r) { return smooth_l1_loss(x, y, r); });
        check_reductions("huber_loss", [&](Reduction r) { return huber_loss(x, y, r); });
        check_reductions("kl_div", [&](Reduction r) { return kl_div(x, share, r); });
        check_reductions("poisson_nll_loss", [&](Reduction r) { return poisson_nll_loss(x, share, {.reduction = r}); });
        check_reductions("gaussian_nll_loss",
                         [&](Reduction r) { return gaussian_nll_loss(x, y, share, {.reduction = r}); });
        check_reductions("binary_cross_entropy",
                         [&](Reduction r) { return binary_cross_entropy(share, share, r, share); });
        check_reductions("bce_with_logits", [&](Reduction r) { return bce_with_logits(x, share, r, share); });
        check_reductions("sigmoid_focal_loss", [&](Reduction r) { return sigmoid_focal_loss(x, share, 0.5, 2, r); });
        check_reductions("multilabel_soft_margin_loss",
                         [&](Reduction r) { return multilabel_soft_margin_loss(x, share, r); });
        check_reductions("soft_margin_loss", [&](Reduction r) { return soft_margin_loss(x, sign, r); });
        check_reductions("hinge_embedding_loss", [&](Reduction r) { return hinge_embedding_loss(x, sign, 1, r); });
        check_reductions("margin_ranking_loss", [&](Reduction r) { return margin_ranking_loss(x, y, sign, 0.5, r); });
        check_reductions("cosine_embedding_loss",
                         [&](Reduction r) { return cosine_embedding_loss(x, y, row_sign, 0, r); });
        check_reductions("triplet_margin_loss",
                         [&](Reduction r) { return triplet_margin_loss(x, y, z, {.reduction = r}); });
        check_reductions("info_nce", [&](Reduction r) { return info_nce(x, y, 0.5, r); });
        check_reductions("dice_loss", [&](Reduction r) { return dice_loss(share, share, 1, r); });
        check_reductions("tversky_loss", [&](Reduction r) { return tversky_loss(share, share, {.reduction = r}); });
        check_reductions("nll_loss", [&](Reduction r) { return nll_loss(x, labels, {.reduction = r}); });
        check_reductions("multi_margin_loss",
                         [&](Reduction r) { return multi_margin_loss(x, labels, {.reduction = r}); });
        check_reductions("cross_entropy", [&](Reduction r) { return cross_entropy(x, share, {.reduction = r}); });
        check_reductions("multilabel_margin_loss",
                         [&](Reduction r) { return multilabel_margin_loss(x, zeros(shape, {DType::i32}), r); });
    }
    const Tensor boxes = Tensor::from<float>({0, 0, 2, 2, 1, 1, 2, 4, 0, 3, 1, 5}, {3, 4}), other_boxes = boxes + 0.5;
    check_reductions("generalized_box_iou_loss",
                     [&](Reduction r) { return generalized_box_iou_loss(boxes, other_boxes, r); });
    check_reductions("distance_box_iou_loss",
                     [&](Reduction r) { return distance_box_iou_loss(boxes, other_boxes, r); });
    check_reductions("complete_box_iou_loss",
                     [&](Reduction r) { return complete_box_iou_loss(boxes, other_boxes, r); });
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

TEST_CASE("losses: extreme values") {
    const Tensor x = tensor({0, 0.5, 1, -1, 3, 1e30}, {6}), zero = zeros({6});
    CHECK(difference(smooth_l1_loss(x, zero, kNone, 0), {0, 0.5, 1, 1, 3, 1e30}, {0, 1e-6}) == "");
    CHECK(difference(smooth_l1_loss(x, zero, kNone), {0, 0.125, 0.5, 0.5, 2.5, 1e30}, {0, 1e-6}) == "");
    CHECK(difference(huber_loss(x, zero, kNone, 2), {0, 0.125, 0.5, 0.5, 4, 2e30}, {0, 1e-6}) == "");
    CHECK(gradient_of(x, [&](const Tensor& in) { return l1_loss(in, zero, kNone); }) == Values{0, 1, 1, -1, 1, 1});
    CHECK(gradient_of(x, [&](const Tensor& in) { return smooth_l1_loss(in, zero, kNone); }) ==
          Values{0, 0.5, 1, -1, 1, 1});
    CHECK(gradient_of(x, [&](const Tensor& in) { return huber_loss(in, zero, kNone, 2); }) ==
          Values{0, 0.5, 1, -1, 2, 2});
    // Integer targets, and 16-bit floats whose intermediate results overflow their type.
    CHECK(difference(l1_loss(x, zeros({6}, {DType::i64}), kNone), {0, 0.5, 1, 1, 3, 1e30}, {0, 1e-6}) == "");
    const Tensor half = full({3, 5}, 1000, {DType::f16});
    CHECK(huber_loss(half, zeros({3, 5}, {DType::f16}), Reduction::mean, 10).dtype() == DType::f16);
    CHECK(difference(l1_loss(half, -half), {2000}, {}) == "");
    CHECK(difference(huber_loss(half, zeros_like(half), Reduction::mean, 10), {9950}, {4}) == "");

    const Tensor logarithms = tensor({-1, -2}, {2}), none = tensor({0, 1}, {2});
    CHECK(difference(kl_div(logarithms, none, kNone), {0, 2}, {1e-6}) == "");
    CHECK(gradient_of(none, [&](const Tensor& t) { return kl_div(logarithms, t, kNone); }) == Values{1, 3});
    const Tensor counts = tensor({0, 1, 2}, {3}), rates = tensor({0.5, 0.5, 0.5}, {3});
    const double stirling = 2 * std::log(2) - 2 + std::log(4 * std::numbers::pi) / 2, e = std::exp(0.5);
    CHECK(difference(poisson_nll_loss(rates, counts, {.full = true, .reduction = kNone}),
                     {e, e - 0.5, e - 1 + stirling}, {1e-6}) == "");
    CHECK(difference(poisson_nll_loss(zeros({1}), ones({1}), {.log_input = false}), {-std::log(1e-8)}, {1e-4}) == "");
    for (const double count :
         gradient_of(counts, [&](const Tensor& t) { return poisson_nll_loss(rates, t, {.full = true}); }))
        CHECK(std::isfinite(count));
}

TEST_CASE("losses: variances") {
    const Tensor x = random_tensor({3, 5}, 1), t = random_tensor({3, 5}, 2),
                 var = random_tensor({3}, 3, DType::f32, 0.5, 2);
    const Values a = values(x), b = values(t), v = values(var);
    Values expected;
    for (std::size_t i = 0; i < 15; ++i)
        expected.push_back((std::log(v[i / 5]) + (a[i] - b[i]) * (a[i] - b[i]) / v[i / 5]) / 2);
    CHECK(difference(gaussian_nll_loss(x, t, var, {.reduction = kNone}), expected, {1e-6, 1e-6}) == "");
    CHECK(difference(gaussian_nll_loss(x, t, reshape(var, {3, 1}), {.reduction = kNone}), expected, {1e-6, 1e-6}) ==
          "");
    CHECK(gaussian_nll_loss(ones({}), zeros({}), ones({})).item<float>() == doctest::Approx(0.5));
    // A variance clamped to eps still has its gradient.
    const auto loss = [](const Tensor& in) { return gaussian_nll_loss(ones({1}), zeros({1}), in, {.eps = 0.25}); };
    CHECK(loss(zeros({1})).item<float>() == doctest::Approx((std::log(0.25) + 4) / 2));
    CHECK(gradient_of(zeros({1}), loss)[0] == doctest::Approx((4 - 16) / 2.0));
}

TEST_CASE("losses: probabilities of 0 and 1, and large logits") {
    const Tensor p = tensor({0, 0, 1, 1, 0.25}, {5}), t = tensor({0, 1, 0, 1, 0.5}, {5});
    const double soft_loss = -(std::log(0.25) + std::log(0.75)) / 2;
    CHECK(difference(binary_cross_entropy(p, t, kNone), {0, 100, 100, 0, soft_loss}, {1e-6}) == "");
    CHECK(difference(gradient_of(p, [&](const Tensor& in) { return binary_cross_entropy(in, t, kNone); }),
                     {0, -1e12, 1e12, 0, -0.25 / 0.1875}, {1e-6, 1e-6}) == "");
    CHECK(difference(gradient_of(t, [&](const Tensor& in) { return binary_cross_entropy(p, in, kNone); }),
                     {100, 100, -100, -100, std::log(3)}, {1e-6, 1e-6}) == "");

    const Tensor x = tensor({1e30, -1e30, 200, -200}, {4}), targets = tensor({1, 0, 0, 1}, {4}),
                 pos_weight = full({1}, 3);
    CHECK(difference(bce_with_logits(x, targets, kNone, {}, pos_weight), {0, 0, 200, 600}, {0, 1e-6}) == "");
    CHECK(difference(bce_with_logits(x, targets, kNone, pos_weight), {0, 0, 600, 600}, {0, 1e-6}) == "");
    CHECK(difference(sigmoid_focal_loss(x, targets, -1), {0, 0, 200, 200}, {0, 1e-6}) == "");
    CHECK(difference(sigmoid_focal_loss(x, targets, 0.25, 0), {0, 0, 150, 50}, {0, 1e-6}) == "");
    for (const double gamma : {0.0, 0.5, 1.0, 2.0})
        for (const double value :
             gradient_of(x, [&](const Tensor& in) { return sigmoid_focal_loss(in, targets, 0.25, gamma); }))
            CHECK(std::isfinite(value));
    CHECK(difference(soft_margin_loss(x, tensor({1, 1, -1, 1}, {4}), kNone), {0, 1e30, 200, 200}, {0, 1e-6}) == "");
    const Tensor w = random_tensor({3, 1}, 5, DType::f32, 0.5, 2), in = random_tensor({3, 7}, 6),
                 expected = random_tensor({3, 7}, 7, DType::f32, 0, 1);
    CHECK(difference(multilabel_soft_margin_loss(in, expected, kNone, w),
                     values(mean(bce_with_logits(in, expected, kNone, w), {1})), {1e-6}) == "");
}

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
    // Like PyTorch's clamp_min, a loss of exactly 0 has no gradient.
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

TEST_CASE("losses: regions") {
    const Tensor target_mask = tensor({1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1}, {2, 2, 3}), zero_input = zeros({2, 2, 3});
    CHECK(difference(dice_loss(target_mask, target_mask, 0.5, kNone), {0, 0, 0, 0}, {1e-6}) == "");
    CHECK(difference(dice_loss(zero_input, target_mask, 1, kNone), {2.0 / 3, 0.5, 0, 0.75}, {1e-6}) == "");
    CHECK(difference(dice_loss(target_mask, target_mask.to(DType::boolean), 0.5), {0}, {1e-6}) == "");
    const Tensor scores = random_tensor({3, 5}, 1, DType::f32, 0, 1),
                 expected = random_tensor({3, 5}, 2, DType::f32, 0, 1);
    CHECK(difference(tversky_loss(scores, expected, {.smooth = 0.5, .reduction = kNone}),
                     values(dice_loss(scores, expected, 1, kNone)), {1e-6}) == "");
    CHECK(difference(tversky_loss(zero_input, target_mask, {.alpha = 0, .beta = 1, .reduction = kNone}),
                     {2.0 / 3, 0.5, 0, 0.75}, {1e-6}) == "");
    CHECK(difference(tversky_loss(target_mask, zero_input, {.alpha = 0, .beta = 1}), {0}, {1e-6}) == "");
}

TEST_CASE("losses: boxes") {
    // Overlapping, touching, disjoint, nested, identical, of several shapes.
    const Values a{0, 0, 2, 2, 0, 0, 1, 1, 0, 0, 1, 2, 0, 0, 4, 4, 1, 1, 2, 4, -3, 0.5, 1, 1},
        b{1, 1, 3, 4, 1, 0, 2, 1, 4, 5, 6, 6, 1, 1, 2, 3, 1, 1, 2, 4, -2, 0, -1, 2};
    const auto pair = [&](std::size_t n, std::size_t m) {
        return BoxesReference{a[4 * n], a[4 * n + 1], a[4 * n + 2], a[4 * n + 3],
                              b[4 * m], b[4 * m + 1], b[4 * m + 2], b[4 * m + 3]};
    };
    for (const DType dtype : floats()) {
        const Tensor x = tensor(a, {6, 4}, dtype), y = tensor(b, {6, 4}, dtype);
        Values ious, generalized, distance, complete;
        for (std::size_t n = 0; n < 6; ++n) {
            for (std::size_t m = 0; m < 6; ++m) ious.push_back(pair(n, m).iou(0));
            generalized.push_back(pair(n, n).generalized());
            distance.push_back(pair(n, n).distance());
            complete.push_back(pair(n, n).distance() + pair(n, n).alpha() * pair(n, n).v());
        }
        const Tolerance allowed = tolerance(dtype, 8, 4);
        CHECK(difference(box_iou(x, y), ious, allowed) == "");
        CHECK(difference(generalized_box_iou_loss(x, y), generalized, allowed) == "");
        CHECK(difference(distance_box_iou_loss(x, y), distance, allowed) == "");
        CHECK(difference(complete_box_iou_loss(x, y), complete, allowed) == "");
        CHECK(difference(complete_box_iou_loss(x[5], y[5]), {complete[5]}, allowed) == "");
    }
    CHECK(pair(2, 2).generalized() > 1);
    CHECK(box_iou(zeros({0, 4}), zeros({3, 4})).shape() == Shape{0, 3});
    CHECK(generalized_box_iou_loss(zeros({0, 4}), zeros({0, 4}), Reduction::mean).item<float>() == 0);
    // Boxes of area 0.
    for (const double zero : gradient_of(zeros({1, 4}), [](const Tensor& in) {
             return generalized_box_iou_loss(in, zeros({1, 4}));
         }))
        CHECK(std::isfinite(zero));
}

TEST_CASE("losses: no gradient flows to alpha of complete_box_iou_loss") {
    if (!device().info().fp64) return skip("f64: the device has no double precision");
    const Values a{-3, 0.5, 1, 1}, b{-2, 0, -1, 2};
    const auto loss = [&](const Values& box, double alpha) {
        const BoxesReference pair{box[0], box[1], box[2], box[3], b[0], b[1], b[2], b[3]};
        return pair.distance() + alpha * pair.v();
    };
    const double alpha = BoxesReference{a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]}.alpha();
    CHECK(alpha > 0.1);
    Values expected;
    for (std::size_t i = 0; i < 4; ++i) {
        Values raised = a, lowered = a;
        raised[i] += 1e-6;
        lowered[i] -= 1e-6;
        expected.push_back((loss(raised, alpha) - loss(lowered, alpha)) / 2e-6);
    }
    const Tensor y = tensor(b, {4}, DType::f64);
    CHECK(difference(
              gradient_of(tensor(a, {4}, DType::f64), [&](const Tensor& in) { return complete_box_iou_loss(in, y); }),
              expected, {1e-6}) == "");
}

TEST_CASE("losses: second derivatives where the first have a kink") {
    if (!device().info().fp64) return skip("f64: the device has no double precision");
    const auto finite = [](const std::string& name, const Tensor& at,
                           const std::function<Tensor(const Tensor&)>& loss) {
        CAPTURE(name);
        Tensor x = at.detach().clone();
        x.set_requires_grad();
        const Tensor first = grad({sum(loss(x))}, {x}, {.create_graph = true})[0];
        for (const double value : values(first)) CHECK(std::isfinite(value));
        if (!first.requires_grad()) return;
        for (const double value : values(grad({sum(square(first))}, {x}, {.allow_unused = true})[0]))
            CHECK(std::isfinite(value));
    };
    const Tensor zero = zeros({2, 3}, {DType::f64}), one = ones({2, 3}, {DType::f64});
    finite("pairwise_distance", zero, [&](const Tensor& x) { return pairwise_distance(x, zero, 2, 0); });
    finite("pairwise_distance", zero, [&](const Tensor& x) { return pairwise_distance(x, zero, 1.5, 0); });
    finite("cosine_similarity", zero, [&](const Tensor& x) { return cosine_similarity(x, one); });
    finite("kl_div", zero, [&](const Tensor& x) { return kl_div(one, x); });
    finite("binary_cross_entropy", zero, [&](const Tensor& x) { return binary_cross_entropy(x, one); });
    finite("binary_cross_entropy", zero, [&](const Tensor& x) { return binary_cross_entropy(x, x + 1.0); });
    finite("sigmoid_focal_loss", one * 1e4, [&](const Tensor& x) { return sigmoid_focal_loss(x, one, 0.25, 0.5); });
    finite("huber_loss", one, [&](const Tensor& x) { return huber_loss(x, zero); });
    finite("generalized_box_iou_loss", zeros({1, 4}, {DType::f64}),
           [&](const Tensor& x) { return generalized_box_iou_loss(x, x * 0.5); });
}

TEST_CASE("losses: modules call the functions") {
    const Tensor x = random_tensor({3, 5}, 1), y = random_tensor({3, 5}, 2),
                 share = random_tensor({3, 5}, 3, DType::f32, 0.1, 0.9), labels = int64_tensor({4, 0, 2}, {3}),
                 weight = random_tensor({5}, 4, DType::f32, 0.5, 2), sign = int64_tensor({1, -1, 1}, {3});
    const auto same = [](const Tensor& got, const Tensor& expected) { CHECK(values(got) == values(expected)); };
    same(nn::CrossEntropyLoss({.label_smoothing = 0.1}, weight)(x, labels),
         cross_entropy(x, labels, {.label_smoothing = 0.1}, weight));
    same(nn::BCEWithLogitsLoss(kNone, {}, weight)(x, share), bce_with_logits(x, share, kNone, {}, weight));
    same(nn::NLLLoss{{.ignore_index = 2}, weight}(x, labels), nll_loss(x, labels, {.ignore_index = 2}, weight));
    same(nn::MultiMarginLoss{{.p = 2}, weight}(x, labels), multi_margin_loss(x, labels, {.p = 2}, weight));
    same(nn::BCELoss{Reduction::sum, weight}(share, share), binary_cross_entropy(share, share, Reduction::sum, weight));
    same(nn::MultiLabelSoftMarginLoss{.weight = weight}(x, share),
         multilabel_soft_margin_loss(x, share, Reduction::mean, weight));
    same(nn::MultiLabelMarginLoss{kNone}(x, zeros({3, 5}, {DType::i64})),
         multilabel_margin_loss(x, zeros({3, 5}, {DType::i64}), kNone));
    same(nn::SoftMarginLoss{kNone}(x, y), soft_margin_loss(x, y, kNone));
    same(nn::HingeEmbeddingLoss{.margin = 2}(x, sign.to(DType::f32)[0] * ones({3, 5})),
         hinge_embedding_loss(x, ones({3, 5}), 2));
    same(nn::L1Loss{Reduction::sum}(x, y), l1_loss(x, y, Reduction::sum));
    same(nn::SmoothL1Loss{.beta = 0.3}(x, y), smooth_l1_loss(x, y, Reduction::mean, 0.3));
    same(nn::HuberLoss{.delta = 0.3}(x, y), huber_loss(x, y, Reduction::mean, 0.3));
    same(nn::KLDivLoss{.log_target = true}(x, y), kl_div(x, y, Reduction::mean, true));
    same(nn::PoissonNLLLoss{{.full = true}}(x, share), poisson_nll_loss(x, share, {.full = true}));
    same(nn::GaussianNLLLoss{{.full = true}}(x, y, share), gaussian_nll_loss(x, y, share, {.full = true}));
    same(nn::CosineSimilarity{.axis = 0}(x, y), cosine_similarity(x, y, 0));
    same(nn::PairwiseDistance{.p = 3, .keep_axis = true}(x, y), pairwise_distance(x, y, 3, 1e-6, true));
    same(nn::MarginRankingLoss{.margin = 0.5}(x, y, share), margin_ranking_loss(x, y, share, 0.5));
    same(nn::CosineEmbeddingLoss{.margin = 0.5}(x, y, sign), cosine_embedding_loss(x, y, sign, 0.5));
    same(nn::TripletMarginLoss{{.margin = 2, .swap = true}}(x, y, share),
         triplet_margin_loss(x, y, share, {.margin = 2, .swap = true}));
}

TEST_CASE("losses: defaults are PyTorch's") {
    const Tensor x = random_tensor({3, 5}, 1), y = random_tensor({3, 5}, 2),
                 share = random_tensor({3, 5}, 3, DType::f32, 0.1, 0.9);
    const auto same = [](const Tensor& got, const Tensor& expected) { CHECK(values(got) == values(expected)); };
    constexpr auto mean = Reduction::mean;
    same(smooth_l1_loss(x, y), smooth_l1_loss(x, y, mean, 1));
    same(huber_loss(x, y), huber_loss(x, y, mean, 1));
    same(poisson_nll_loss(x, share),
         poisson_nll_loss(x, share, {.log_input = true, .full = false, .eps = 1e-8, .reduction = mean}));
    same(gaussian_nll_loss(x, y, share),
         gaussian_nll_loss(x, y, share, {.full = false, .eps = 1e-6, .reduction = mean}));
    same(sigmoid_focal_loss(x, share), sigmoid_focal_loss(x, share, 0.25, 2, kNone));
    same(hinge_embedding_loss(x, y), hinge_embedding_loss(x, y, 1, mean));
    same(margin_ranking_loss(x, y, y), margin_ranking_loss(x, y, y, 0, mean));
    same(cosine_similarity(x, y), cosine_similarity(x, y, 1, 1e-8));
    same(pairwise_distance(x, y), pairwise_distance(x, y, 2, 1e-6, false));
    same(triplet_margin_loss(x, y, share),
         triplet_margin_loss(x, y, share, {.margin = 1, .p = 2, .eps = 1e-6, .swap = false, .reduction = mean}));
    CHECK(box_iou(zeros({2, 4}), zeros({3, 4})).shape() == Shape{2, 3});
    CHECK(complete_box_iou_loss(zeros({2, 4}), zeros({2, 4})).shape() == Shape{2});
}

TEST_CASE("losses: wrong arguments") {
    const Tensor none, x = zeros({2, 3}), other = zeros({3, 2}), ints = zeros({2, 3}, {DType::i32}),
                       labels = int64_tensor({0, 1}, {2}), row = zeros({2}), boxes = zeros({2, 4});
    using Pair = Tensor (*)(const Tensor&, const Tensor&);
    const std::pair<std::string, Pair> pairs[] = {
        {"l1_loss", +[](const Tensor& a, const Tensor& b) { return l1_loss(a, b); }},
        {"smooth_l1_loss", +[](const Tensor& a, const Tensor& b) { return smooth_l1_loss(a, b); }},
        {"huber_loss", +[](const Tensor& a, const Tensor& b) { return huber_loss(a, b); }},
        {"kl_div", +[](const Tensor& a, const Tensor& b) { return kl_div(a, b); }},
        {"poisson_nll_loss", +[](const Tensor& a, const Tensor& b) { return poisson_nll_loss(a, b); }},
        {"gaussian_nll_loss",
         +[](const Tensor& a, const Tensor& b) {
             return gaussian_nll_loss(a, b, ones({2, 3}));
         }},
        {"binary_cross_entropy", +[](const Tensor& a, const Tensor& b) { return binary_cross_entropy(a, b); }},
        {"soft_margin_loss", +[](const Tensor& a, const Tensor& b) { return soft_margin_loss(a, b); }},
        {"hinge_embedding_loss", +[](const Tensor& a, const Tensor& b) { return hinge_embedding_loss(a, b); }},
        {"multilabel_soft_margin_loss",
         +[](const Tensor& a, const Tensor& b) { return multilabel_soft_margin_loss(a, b); }},
        {"dice_loss", +[](const Tensor& a, const Tensor& b) { return dice_loss(a, b); }},
        {"tversky_loss", +[](const Tensor& a, const Tensor& b) { return tversky_loss(a, b); }},
    };
    for (const auto& [name, loss] : pairs) {
        CHECK(error_of([&, f = loss] { f(none, x); }) ==
              "ValueError " + name + ": expected a tensor as x, got an undefined one");
        CHECK(error_of([&, f = loss] { f(x, none); }) ==
              "ValueError " + name + ": expected a tensor as target, got an undefined one");
        const bool stretches = name == "gaussian_nll_loss";
        CHECK(error_of([&, f = loss] { f(x, other); }) ==
              "ShapeError " + name + ": expected " +
                  (stretches ? "a target of a shape that stretches to [2, 3]" : "the target of shape [2, 3]") +
                  ", got [3, 2]");
        CHECK(error_of([&, f = loss] { f(ints, x); }) ==
              "TypeError " + name + ": expected f32, f64, f16 or bf16 as x, got i32 (convert with .to(DType::f32))");
    }
    const auto check_message = [](const std::string& expected, const std::function<void()>& call) {
        CHECK(error_of(call) == expected);
    };
    check_message("ValueError smooth_l1_loss: expected a beta of at least 0, got -1",
                  [&] { (void)smooth_l1_loss(x, x, kNone, -1); });
    check_message("ValueError huber_loss: expected a delta above 0, got 0", [&] { (void)huber_loss(x, x, kNone, 0); });
    check_message("ValueError gaussian_nll_loss: expected an eps above 0, got 0",
                  [&] { (void)gaussian_nll_loss(x, x, x, {.eps = 0}); });
    check_message("ShapeError gaussian_nll_loss: expected var of shape [2, 3], [2, 1] or [2], got [3]",
                  [&] { (void)gaussian_nll_loss(x, x, zeros({3})); });
    check_message(
        "TypeError gaussian_nll_loss: expected f32, f64, f16 or bf16 as var, got i32 (convert with .to(DType::f32))",
        [&] { (void)gaussian_nll_loss(x, x, ints); });
    check_message("ShapeError binary_cross_entropy: expected a weight of a shape that stretches to [2, 3], got [2]",
                  [&] { (void)binary_cross_entropy(x, x, kNone, row); });
    check_message("ShapeError bce_with_logits: expected a weight of a shape that stretches to [2, 3], got [2]",
                  [&] { (void)bce_with_logits(x, x, kNone, row); });
    check_message(
        "ShapeError bce_with_logits: expected a pos_weight of a shape that stretches to [2, 3], got [1, 2, 3]", [&] {
            (void)bce_with_logits(x, x, kNone, {}, zeros({1, 2, 3}));
        });
    check_message(
        "ShapeError multilabel_soft_margin_loss: expected a weight of a shape that stretches to [2, 3], got [2]",
        [&] { (void)multilabel_soft_margin_loss(x, x, kNone, row); });
    check_message("ShapeError multilabel_soft_margin_loss: expected x of shape (N, C), got []",
                  [&] { (void)multilabel_soft_margin_loss(zeros({}), zeros({})); });
    check_message("ValueError sigmoid_focal_loss: expected an alpha in [0, 1], or -1 for none, got 2",
                  [&] { (void)sigmoid_focal_loss(x, x, 2); });
    check_message("ValueError sigmoid_focal_loss: expected a gamma of at least 0, got -1",
                  [&] { (void)sigmoid_focal_loss(x, x, 0.25, -1); });
    check_message("ShapeError dice_loss: expected x of shape (N, C, ...), got [2]", [&] { (void)dice_loss(row, row); });
    check_message("ShapeError tversky_loss: expected x of shape (N, C, ...), got [2]",
                  [&] { (void)tversky_loss(row, row); });
    check_message("ValueError tversky_loss: expected alpha and beta of at least 0, got -1 and 0.5",
                  [&] { (void)tversky_loss(x, x, {.alpha = -1}); });

    check_message("ShapeError cross_entropy: expected probabilities of shape [2, 3], got [2, 4]", [&] {
        (void)cross_entropy(zeros({2, 3}), zeros({2, 4}));
    });
    check_message("ShapeError cross_entropy: expected logits of shape (N, C, ...), got []",
                  [&] { (void)cross_entropy(zeros({}), labels); });
    check_message("ShapeError cross_entropy: expected the label of logits (C) of shape [], got [2]",
                  [&] { (void)cross_entropy(zeros({3}), labels); });
    check_message("ShapeError cross_entropy: expected labels of shape [2, 5], got [2]", [&] {
        (void)cross_entropy(zeros({2, 3, 5}), labels);
    });
    check_message("ShapeError cross_entropy: expected the weight of shape [3], got [2]",
                  [&] { (void)cross_entropy(x, labels, {}, row); });
    check_message(
        "TypeError cross_entropy: expected f32, f64, f16 or bf16 as probabilities, got i32 (convert with "
        ".to(DType::f32))",
        [&] { (void)cross_entropy(x, ints); });
    check_message("ValueError cross_entropy: expected label_smoothing in [0, 1), got 1",
                  [&] { (void)cross_entropy(x, x, {.label_smoothing = 1}); });
    check_message("ValueError cross_entropy: expected a tensor as target, got an undefined one",
                  [&] { (void)cross_entropy(x, none); });
    check_message("TypeError nll_loss: expected labels of an integer type (i8 to i64, u8 to u64), got f32",
                  [&] { (void)nll_loss(x, row); });
    check_message("ShapeError nll_loss: expected labels of shape [2], got [2, 3]", [&] { (void)nll_loss(x, ints); });
    check_message("ShapeError nll_loss: expected labels of x (C) of shape [], got [2]",
                  [&] { (void)nll_loss(row, labels); });
    check_message("ShapeError nll_loss: expected at least one class, got x of shape [2, 0]", [&] {
        (void)nll_loss(zeros({2, 0}), labels);
    });
    check_message("ShapeError nll_loss: expected the weight of shape [3], got [2]",
                  [&] { (void)nll_loss(x, labels, {}, row); });
    check_message("ValueError multi_margin_loss: expected p of 1 or 2, got 3",
                  [&] { (void)multi_margin_loss(x, labels, {.p = 3}); });
    check_message("ShapeError multi_margin_loss: expected labels of x (C) of shape [], got [2]",
                  [&] { (void)multi_margin_loss(row, labels); });
    check_message("ShapeError multilabel_margin_loss: expected labels of shape [2, 3], got [2]",
                  [&] { (void)multilabel_margin_loss(x, labels); });
    check_message(
        "TypeError multilabel_margin_loss: expected labels of an integer type (i8 to i64, u8 to u64), got f32",
        [&] { (void)multilabel_margin_loss(x, x); });

    check_message("ShapeError cosine_similarity: expected x1 and x2 that broadcast to one shape, got [2, 3] and [3, 2]",
                  [&] { (void)cosine_similarity(x, other); });
    check_message("ValueError cosine_similarity: expected an eps of at least 0, got -1",
                  [&] { (void)cosine_similarity(x, x, 1, -1); });
    CHECK(error_of([&] { (void)cosine_similarity(x, x, 2); }).starts_with("ShapeError cosine_similarity: "));
    check_message("ValueError pairwise_distance: expected a number p, got NaN",
                  [&] { (void)pairwise_distance(x, x, kNaN); });
    check_message("ShapeError pairwise_distance: expected x1 and x2 of shape (..., D), got [] and []",
                  [&] { (void)pairwise_distance(zeros({}), zeros({})); });
    check_message("ShapeError margin_ranking_loss: expected x2 of shape [2, 3], got [3, 2]",
                  [&] { (void)margin_ranking_loss(x, other, x); });
    check_message("ShapeError margin_ranking_loss: expected the target of shape [2, 3], got [2]",
                  [&] { (void)margin_ranking_loss(x, x, row); });
    check_message("ShapeError cosine_embedding_loss: expected x1 of shape (N, D) or (D), got []",
                  [&] { (void)cosine_embedding_loss(zeros({}), zeros({}), zeros({})); });
    check_message("ShapeError cosine_embedding_loss: expected the target of shape [2], got [2, 3]",
                  [&] { (void)cosine_embedding_loss(x, x, x); });
    check_message("ShapeError triplet_margin_loss: expected the negative of shape [2, 3], got [3, 2]",
                  [&] { (void)triplet_margin_loss(x, x, other); });
    check_message("ValueError triplet_margin_loss: expected a margin above 0, got 0",
                  [&] { (void)triplet_margin_loss(x, x, x, {.margin = 0}); });
    check_message("ValueError triplet_margin_loss: expected p above 0, got -1",
                  [&] { (void)triplet_margin_loss(x, x, x, {.p = -1}); });
    check_message("ShapeError info_nce: expected keys of shape [2, 3], got [3, 2]", [&] { (void)info_nce(x, other); });
    check_message("ValueError info_nce: expected a temperature above 0, got 0", [&] { (void)info_nce(x, x, 0); });

    check_message("ShapeError box_iou: expected boxes2 of shape (N, 4), got [2, 3]", [&] { (void)box_iou(boxes, x); });
    check_message("ShapeError box_iou: expected boxes1 of shape (N, 4), got [4]",
                  [&] { (void)box_iou(zeros({4}), boxes); });
    check_message("ShapeError generalized_box_iou_loss: expected boxes1 of shape (N, 4) or (4), got [2, 3]",
                  [&] { (void)generalized_box_iou_loss(x, x); });
    check_message("ShapeError distance_box_iou_loss: expected boxes2 of shape [2, 4], got [4]",
                  [&] { (void)distance_box_iou_loss(boxes, zeros({4})); });
    check_message(
        "TypeError complete_box_iou_loss: expected f32, f64, f16 or bf16 as boxes1, got i32 (convert with "
        ".to(DType::f32))",
        [&] {
            (void)complete_box_iou_loss(zeros({2, 4}, {DType::i32}), boxes);
        });
}
