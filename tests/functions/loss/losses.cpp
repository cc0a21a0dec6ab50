// Losses: reductions, extreme values, variances, probabilities, second derivatives, modules, defaults. Regular values
// and gradients are tested by the catalogue.
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

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

TEST_CASE("losses: values of two elements, unreduced, and their mean and sum") {
    const Tensor x = tensor({1, 2}, {2}), target = tensor({1, 5}, {2});
    CHECK(difference(l1_loss(x, target, kNone), {0, 3}, {}) == "");
    CHECK(difference(l1_loss(x, target), {1.5}, {}) == "");
    CHECK(difference(l1_loss(x, target, Reduction::sum), {3}, {}) == "");
    CHECK(difference(huber_loss(x, target, kNone), {0, 2.5}, {}) == "");
    CHECK(difference(smooth_l1_loss(x, target, kNone, 2), {0, 2}, {1e-6}) == "");
    CHECK(difference(poisson_nll_loss(tensor({0, 1}, {2}), tensor({2, 2}, {2}), {.reduction = kNone}), {1, 0.718282},
                     {1e-5}) == "");
    CHECK(difference(gaussian_nll_loss(x, target, tensor({1, 4}, {2}), {.reduction = kNone}), {0, 1.818147}, {1e-5}) ==
          "");
    CHECK(difference(soft_margin_loss(tensor({0, 1}, {2}), tensor({1, -1}, {2}), kNone), {0.693147, 1.313262},
                     {1e-5}) == "");
}

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
    const Tensor zeros_tensor = zeros({2, 3}, {DType::f64}), ones_tensor = ones({2, 3}, {DType::f64});
    finite("pairwise_distance", zeros_tensor,
           [&](const Tensor& x) { return pairwise_distance(x, zeros_tensor, 2, 0); });
    finite("pairwise_distance", zeros_tensor,
           [&](const Tensor& x) { return pairwise_distance(x, zeros_tensor, 1.5, 0); });
    finite("cosine_similarity", zeros_tensor, [&](const Tensor& x) { return cosine_similarity(x, ones_tensor); });
    finite("kl_div", zeros_tensor, [&](const Tensor& x) { return kl_div(ones_tensor, x); });
    finite("binary_cross_entropy", zeros_tensor, [&](const Tensor& x) { return binary_cross_entropy(x, ones_tensor); });
    finite("binary_cross_entropy", zeros_tensor, [&](const Tensor& x) { return binary_cross_entropy(x, x + 1.0); });
    finite("sigmoid_focal_loss", ones_tensor * 1e4,
           [&](const Tensor& x) { return sigmoid_focal_loss(x, ones_tensor, 0.25, 0.5); });
    finite("huber_loss", ones_tensor, [&](const Tensor& x) { return huber_loss(x, zeros_tensor); });
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
