// ctc_loss: kernels of both styles compared with the decomposition, formats of targets and lengths, impossible
// alignments.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/loss/loss_helpers.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

std::vector<std::int64_t> random_labels(std::int64_t count, std::uint64_t seed, double low, double high) {
    std::vector<std::int64_t> all;
    for (const double random_value : random_values(count, seed, low, high))
        all.push_back(static_cast<std::int64_t>(std::floor(random_value)));
    return all;
}

struct CtcSize {
    std::int64_t steps, n, classes, labels;
};

}  // namespace

TEST_CASE("ctc_loss: a label in two steps has three alignments") {
    // Label 1 as 1 1, blank 1 or 1 blank, each of probability 1/9: the loss is -log(3/9).
    const Tensor log_probs = log(full({2, 1, 3}, 1.0 / 3));
    CHECK(difference(ctc_loss(log_probs, int64_tensor({1}, {1, 1}), {2}, {1}), {1.098612}, {1e-5}) == "");
    // Labels 1 2 have one alignment: -log(1/9), and the mean divides by the 2 labels.
    CHECK(difference(ctc_loss(log_probs, int64_tensor({1, 2}, {1, 2}), {2}, {2}, {.reduction = Reduction::sum}),
                     {2.197225}, {1e-5}) == "");
    CHECK(difference(ctc_loss(log_probs, int64_tensor({1, 2}, {1, 2}), {2}, {2}), {1.098612}, {1e-5}) == "");
}

TEST_CASE("ctc_loss: kernels of both styles match the decomposition") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const CtcSize& size : {CtcSize{1, 1, 2, 1}, CtcSize{5, 3, 4, 2}, CtcSize{30, 4, 7, 9},
                                    CtcSize{20, 3, 3, 10}, CtcSize{70, 2, 5, 30}, CtcSize{6, 2, 3, 0}}) {
            if (small_cases() && size.steps > 40) continue;
            CAPTURE(size.steps);
            CAPTURE(size.labels);
            for (const DType dtype : floats()) {
                const Shape shape{size.steps, size.n, size.classes};
                const Tensor x = log_softmax(random_tensor(shape, 1, dtype, -3, 3), 2).set_requires_grad();
                const auto last = static_cast<double>(size.classes);
                const Tensor targets =
                    int64_tensor(random_labels(size.n * size.labels, 2, 1, last), {size.n, size.labels});
                std::vector<std::int64_t> inputs, lengths;
                for (std::int64_t n = 0; n < size.n; ++n) {
                    inputs.push_back(std::max<std::int64_t>(size.steps - 2 * n, 0));
                    lengths.push_back(std::max<std::int64_t>(size.labels - n, 0));
                }
                const Tensor g = random_tensor({size.n}, 3, dtype);
                const auto run = [&] {
                    const Tensor losses =
                        ctc_loss(x, targets, int64_tensor(inputs, {size.n}), int64_tensor(lengths, {size.n}),
                                 {.reduction = kNone, .zero_infinity = true});
                    return std::pair(values(losses), values(grad({losses}, {x}, {.output_gradients = {g}})[0]));
                };
                const auto [losses, gradient] = run();
                const detail::DecompositionScope decomposition;
                const auto [expected, expected_gradient] = run();
                const auto terms = static_cast<double>(size.steps * 4);
                CHECK(difference(losses, expected, tolerance(dtype, terms, 4)) == "");
                CHECK(difference(gradient, expected_gradient, tolerance(dtype, terms, 8)) == "");
                CHECK(*std::ranges::max_element(losses) > 0);
            }
        }
    }
}

TEST_CASE("ctc_loss: targets padded, concatenated, of one sequence; lengths as tensors and as numbers") {
    const Tensor x = log_softmax(random_tensor({7, 3, 5}, 1, DType::f32, -2, 2), 2);
    const std::vector<std::int64_t> inputs{7, 5, 6}, lengths{2, 3, 1};
    const Tensor rows = int64_tensor({1, 2, 99, 4, 4, 3, 2, -7, 0}, {3, 3}),
                 concatenated = int64_tensor({1, 2, 4, 4, 3, 2}, {6});
    const CtcLossOptions none{.reduction = kNone};
    const Values expected = values(ctc_loss(x, rows, inputs, lengths, none));
    const Tensor input_lengths = int64_tensor(inputs, {3}), target_lengths = int64_tensor(lengths, {3});
    for (const DType type : {DType::i64, DType::i32}) {
        CHECK(values(ctc_loss(x, rows.to(type), input_lengths.to(type), target_lengths.to(type), none)) == expected);
        CHECK(values(ctc_loss(x, concatenated.to(type), input_lengths.to(type), target_lengths.to(type), none)) ==
              expected);
    }
    CHECK(values(ctc_loss(x, concatenated, inputs, lengths, none)) == expected);
    for (const bool sums : {true, false}) {
        double total = 0;
        for (std::size_t i = 0; i < 3; ++i) total += expected[i] / (sums ? 1 : 3 * static_cast<double>(lengths[i]));
        CHECK(difference(ctc_loss(x, rows, inputs, lengths, {.reduction = sums ? Reduction::sum : Reduction::mean}),
                         {total}, {1e-5, 1e-5}) == "");
    }
    const Tensor unbatched = slice(select(x, 1, 1), 0, 0, 5);
    const Tensor single =
        ctc_loss(unbatched, int64_tensor({4, 4, 3}, {3}), int64_tensor({5}, {}), int64_tensor({3}, {}), none);
    CHECK(single.shape() == Shape{});
    CHECK(difference(single, {expected[1]}, {1e-5, 1e-5}) == "");
    CHECK(difference(ctc_loss(unbatched, int64_tensor({4, 4, 3}, {1, 3}), {5}, {3}, {.reduction = Reduction::sum}),
                     {expected[1]}, {1e-5, 1e-5}) == "");
    for (const DType half : {DType::f16, DType::bf16}) {
        const Tensor reduced = ctc_loss(x.to(half), rows, inputs, lengths, none);
        CHECK(reduced.dtype() == half);
        CHECK(difference(reduced, values(ctc_loss(x.to(half).to(DType::f32), rows, inputs, lengths, none)),
                         {.absolute = 0, .relative = 0.01}) == "");
    }
    CHECK(ctc_loss(zeros({4, 0, 3}), zeros({0, 2}, {DType::i64}), std::vector<std::int64_t>(),
                   std::vector<std::int64_t>(), none)
              .shape() == Shape{0});
}

TEST_CASE("ctc_loss: without an alignment infinite, or 0 without a gradient; labels and lengths out of range") {
    const Tensor lengths = int64_tensor({3, 2, 0, 2}, {4}), inputs = int64_tensor({4, 3, 0, 0}, {4});
    const Tensor targets = int64_tensor({1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1}, {4, 3});
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const bool decomposed : {false, true}) {
            const auto run = [&](bool zero_infinity) {
                const Tensor x = log_softmax(random_tensor({4, 4, 3}, 1), 2).set_requires_grad();
                const auto call = [&] {
                    return ctc_loss(x, targets, inputs, lengths, {.reduction = kNone, .zero_infinity = zero_infinity});
                };
                const Tensor losses = [&] {
                    if (!decomposed) return call();
                    const detail::DecompositionScope here;
                    return call();
                }();
                sum(losses).backward();
                return std::pair(values(losses), values(x.grad()));
            };
            const auto [losses, gradient] = run(false);
            // Three equal labels need five steps, two labels more than zero.
            CHECK(losses[0] == kInfinity);
            CHECK((losses[1] > 0 && losses[1] < 10));
            CHECK(losses[2] == 0);
            CHECK(losses[3] == kInfinity);
            for (std::size_t t = 0; t < 4; ++t)
                for (std::size_t n = 0; n < 4; ++n)
                    for (std::size_t c = 0; c < 3; ++c) {
                        const double slope = gradient[t * 12 + n * 3 + c];
                        if (n == 0 && c != 2) CHECK(std::isnan(slope));
                        else if (n == 1 && t < 3) CHECK((slope <= 0 && slope >= -1));
                        else CHECK(slope == 0);
                    }
            const auto [zeroed, zeroed_gradient] = run(true);
            CHECK(zeroed[0] == 0);
            CHECK(zeroed[1] == losses[1]);
            CHECK(zeroed[3] == 0);
            for (std::size_t i = 0; i < zeroed_gradient.size(); ++i)
                CHECK(zeroed_gradient[i] == (i / 3 % 4 == 1 ? gradient[i] : 0.0));
        }
        const Tensor x = log_softmax(random_tensor({4, 1, 3}, 1), 2);
        const auto loss_of = [&](std::int64_t label, std::int64_t steps, std::int64_t length) {
            return values(ctc_loss(x, int64_tensor({1, label}, {1, 2}), int64_tensor({steps}, {1}),
                                   int64_tensor({length}, {1})))[0];
        };
        CHECK(std::isfinite(loss_of(2, 4, 2)));
        CHECK(std::isnan(loss_of(3, 4, 2)));
        CHECK(std::isnan(loss_of(-1, 4, 2)));
        CHECK(std::isfinite(loss_of(-1, 4, 1)));
        CHECK(std::isnan(loss_of(2, 5, 2)));
        CHECK(std::isnan(loss_of(2, -1, 2)));
        CHECK(std::isnan(loss_of(2, 4, 3)));
        // A probability of 0 on the path.
        const Tensor impossible = where(arange(0, 3, 1, {DType::i64}) == 1, -kInfinity, x).set_requires_grad();
        const Tensor loss = ctc_loss(impossible, int64_tensor({1, 2}, {1, 2}), {4}, {2}, {.zero_infinity = true});
        CHECK(values(loss) == Values{0});
        const Tensor some = ctc_loss(impossible, int64_tensor({2, 2}, {1, 2}), {4}, {2});
        some.backward();
        CHECK(std::isfinite(values(some)[0]));
        for (const double value : values(impossible.grad())) CHECK(std::isfinite(value));
    }
}

TEST_CASE("ctc_loss: errors") {
    const Tensor x = zeros({5, 2, 3}), targets = int64_tensor({1, 2, 1, 2}, {2, 2}),
                 lengths = int64_tensor({2, 2}, {2});
    CHECK_THROWS_WITH_AS(ctc_loss(x, targets, lengths, lengths, {.blank = 3}),
                         "ctc_loss: expected a blank index within 3 classes, got 3", ValueError);
    CHECK_THROWS_WITH_AS(ctc_loss(zeros({5}), targets, lengths, lengths),
                         "ctc_loss: expected log_probs of shape (T, N, C) or (T, C), got [5]", ShapeError);
    CHECK_THROWS_WITH_AS(
        ctc_loss(x, int64_tensor({1, 2, 1}, {3, 1}), lengths, lengths),
        "ctc_loss: expected targets of shape (N, S), or concatenated, for log_probs [5, 2, 3], got [3, 1]", ShapeError);
    CHECK_THROWS_WITH_AS(ctc_loss(x, targets.to(DType::f32), lengths, lengths),
                         "ctc_loss: expected targets of i32 or i64, got f32", TypeError);
    CHECK_THROWS_WITH_AS(ctc_loss(x, targets, {5, 6}, {2, 2}), "ctc_loss: expected input_lengths of 0 to 5, got 6",
                         ValueError);
    CHECK_THROWS_WITH_AS(ctc_loss(x, targets, {5, 5}, {2, 3}), "ctc_loss: expected target_lengths of 0 to 2, got 3",
                         ValueError);
    CHECK_THROWS_WITH_AS(ctc_loss(x, targets, {5}, {2, 2}), "ctc_loss: expected 2 input_lengths, got 1", ShapeError);
    CHECK_THROWS_WITH_AS(ctc_loss(x, int64_tensor({1, 2, 1}, {3}), {5, 5}, {1, 1}),
                         "ctc_loss: expected targets of 2 labels, the sum of target_lengths, got 3", ShapeError);
    CHECK_THROWS_AS(ctc_loss(x, targets, int64_tensor({2}, {1}), lengths), ShapeError);
    CHECK_THROWS_AS(ctc_loss(x.to(DType::i32), targets, lengths, lengths), TypeError);
    CHECK_THROWS_AS(ctc_loss(Tensor(), targets, lengths, lengths), ValueError);
}
