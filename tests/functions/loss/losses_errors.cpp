// Errors of losses.
#include <functional>
#include <string>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

std::string type_and_message(const std::function<void()>& call) {
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

void check_message(const std::string& expected, const std::function<void()>& call) {
    CHECK(type_and_message(call) == expected);
}

}  // namespace

TEST_CASE("losses: wrong arguments") {
    const Tensor none, x = zeros({2, 3}), other = zeros({3, 2}), ints = zeros({2, 3}, {DType::i32});
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
        CHECK(type_and_message([&, f = loss] { f(none, x); }) ==
              "ValueError " + name + ": expected a tensor as x, got an undefined one");
        CHECK(type_and_message([&, f = loss] { f(x, none); }) ==
              "ValueError " + name + ": expected a tensor as target, got an undefined one");
        const bool stretches = name == "gaussian_nll_loss";
        CHECK(type_and_message([&, f = loss] { f(x, other); }) ==
              "ShapeError " + name + ": expected " +
                  (stretches ? "a target of a shape that stretches to [2, 3]" : "the target of shape [2, 3]") +
                  ", got [3, 2]");
        CHECK(type_and_message([&, f = loss] { f(ints, x); }) ==
              "TypeError " + name + ": expected f32, f64, f16 or bf16 as x, got i32 (convert with .to(DType::f32))");
    }
}

TEST_CASE("losses: wrong arguments of losses of elements and regions") {
    const Tensor x = zeros({2, 3}), ints = zeros({2, 3}, {DType::i32}), row = zeros({2});
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
}

TEST_CASE("losses: wrong arguments of losses of labels") {
    const Tensor none, x = zeros({2, 3}), ints = zeros({2, 3}, {DType::i32}), labels = int64_tensor({0, 1}, {2}),
                       row = zeros({2});
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
}

TEST_CASE("losses: wrong arguments of losses of rows") {
    const Tensor x = zeros({2, 3}), other = zeros({3, 2}), row = zeros({2});
    check_message("ShapeError cosine_similarity: expected x1 and x2 that broadcast to one shape, got [2, 3] and [3, 2]",
                  [&] { (void)cosine_similarity(x, other); });
    check_message("ValueError cosine_similarity: expected an eps of at least 0, got -1",
                  [&] { (void)cosine_similarity(x, x, 1, -1); });
    CHECK(type_and_message([&] { (void)cosine_similarity(x, x, 2); }).starts_with("ShapeError cosine_similarity: "));
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
}

TEST_CASE("losses: wrong arguments of losses of boxes") {
    const Tensor x = zeros({2, 3}), boxes = zeros({2, 4});
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
