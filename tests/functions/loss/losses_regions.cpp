// Losses of regions and boxes.
#include <cmath>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/references.hpp>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

using catalogue::BoxesReference;

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
