// The functions of convolution: values, gradients, views, errors.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/ops/conv/conv2d_helpers.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/conv/conv2d_upcast.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

TEST_CASE("conv2d: an image of 3 x 3 and a filter of 2 x 2, with the gradients of all operands") {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}), weight = tensor({1, 0, 0, 1}, {1, 1, 2, 2}),
                 bias = tensor({10}, {1}), gradient = tensor({1, 1, 1, 1}, {1, 1, 2, 2});
    const Tensor out = unwritten({1, 1, 2, 2}, DType::f32), for_x = unwritten({1, 1, 3, 3}, DType::f32),
                 for_weight = unwritten({1, 1, 2, 2}, DType::f32), for_bias = unwritten({1}, DType::f32);
    // The upper left plus the lower right element of each window: 1 + 5, 2 + 6, 4 + 8, 5 + 9, plus the bias.
    ops::conv2d_forward(x.view(), weight.view(), bias.view(), out.view(), {});
    CHECK(values(out) == std::vector<double>{16, 18, 22, 24});
    ops::conv2d_backward_input(gradient.view(), weight.view(), for_x.view(), {});
    CHECK(values(for_x) == std::vector<double>{1, 1, 0, 1, 2, 1, 0, 1, 1});
    // Sums of the four windows that each filter element sees: 1 + 2 + 4 + 5, and so on.
    ops::conv2d_backward_weights(x.view(), gradient.view(), for_weight.view(), {}, for_bias.view());
    CHECK(values(for_weight) == std::vector<double>{12, 16, 24, 28});
    CHECK(values(for_bias) == std::vector<double>{4});
}

TEST_CASE("conv2d: the public functions compute each case and the bias gradient") {
    if (small_cases()) return;  // the same kernels as above
    for_each_case([](const Filled& filled) {
        const auto& [c, dtype, x, weight, bias, gradient, out, biased_out, dx, dweight, dbias] = filled;
        for (const KernelStyle style : kernel_styles()) {
            const ops::KernelStyleScope scope(style);
            const Tensor forward = unwritten(c.out(), dtype), for_x = unwritten(c.x, dtype);
            const Tensor for_weight = unwritten(c.weight, dtype), for_bias = unwritten({c.weight[0]}, dtype);
            ops::conv2d_forward(x.view(), weight.view(), bias.view(), forward.view(), c.options);
            ops::conv2d_backward_input(gradient.view(), weight.view(), for_x.view(), c.options);
            const Tensor bias_by_itself = unwritten({c.weight[0]}, dtype);
            ops::conv2d_backward_weights(x.view(), gradient.view(), for_weight.view(), c.options, for_bias.view());
            ops::conv2d_backward_bias(gradient.view(), bias_by_itself.view());
            CHECK(difference(bias_by_itself, dbias, c.weights_tolerance(dtype)) == "");
            const auto wrong = [&](Conv2dDirection direction, const Tensor& result, const std::vector<double>& expected,
                                   const Tolerance& allowed) {
                if (c.x[0] == 0) return difference(result, expected, allowed);  // no strategy is chosen for it
                return wrong_by(*ops::choose_conv2d(problem_of(c, dtype, style, direction), x.device()).strategy, dtype,
                                result, expected, allowed);
            };
            CHECK(wrong(Conv2dDirection::forward, forward, biased_out, c.forward_tolerance(dtype)) == "");
            CHECK(wrong(Conv2dDirection::backward_input, for_x, dx, c.input_tolerance(dtype)) == "");
            CHECK(wrong(Conv2dDirection::backward_weights, for_weight, dweight, c.weights_tolerance(dtype)) == "");
            CHECK(difference(for_bias, dbias, c.weights_tolerance(dtype)) == "");
        }
    });
}

TEST_CASE("conv2d: gradients of the differentiable function") {
    if (widest() != DType::f64) return;
    const auto x = random_tensor({2, 4, 5, 6}, 1, DType::f64), weight = random_tensor({6, 2, 3, 2}, 2, DType::f64);
    const auto bias = random_tensor({6}, 3, DType::f64);
    const Conv2dParameters options{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
    CHECK(gradient_difference([&](const auto& in) { return conv2d(in[0], in[1], in[2], options); },
                              {x, weight, bias}) == "");
    CHECK(gradient_difference([&](const auto& in) { return conv2d(in[0], in[1], {}, options); }, {x, weight}) == "");
    // Strided tensors.
    CHECK(gradient_difference(
              [&](const auto& in) {
                  return conv2d(permute(in[0], {0, 1, 3, 2}), permute(in[1], {0, 1, 3, 2}), in[2], options);
              },
              {x, weight, bias}) == "");
}

TEST_CASE("conv2d: gradients that are not requested stay undefined, and single-element inputs work") {
    const Tensor x = random_tensor({1, 1, 1, 1}, 1), weight = random_tensor({1, 1, 1, 1}, 2).set_requires_grad();
    conv2d(x, weight).backward();
    CHECK(!x.grad().defined());
    CHECK(difference(weight.grad(), values(x), {}) == "");
    CHECK_THROWS_WITH_AS(conv2d(x, Tensor()), "conv2d: expected a tensor as weight, got an undefined one", ValueError);
    CHECK(conv2d(reshape(x, {1, 1, 1}), weight).shape() == Shape{1, 1, 1});  // unbatched
    CHECK_THROWS_WITH_AS(conv2d(reshape(x, {1, 1}), weight), doctest::Contains("conv2d: expected x"), ShapeError);
}

TEST_CASE("conv2d: views into larger buffers, and no writes outside of them") {
    const Conv2dCase c{"", {2, 3, 6, 7}, {4, 3, 3, 3}, {.padding = {1, 1}}};
    const auto x = random_tensor({3, 3, 6, 7}, 1), weight = random_tensor({5, 3, 3, 3}, 2);
    const Tensor out = unwritten({4, 4, 6, 7}, DType::f32);
    ops::conv2d_forward(ops::sliced(x.view(), 0, 1, 2), ops::sliced(weight.view(), 0, 1, 4), std::nullopt,
                        ops::sliced(out.view(), 0, 1, 2), c.options);
    const auto all_x = values(x), all_weights = values(weight), all = values(out);
    const std::vector<double> inner(all.begin() + 4 * 42, all.begin() + 12 * 42);
    CHECK(difference(inner,
                     conv2d_reference(c, {all_x.begin() + 126, all_x.end()},
                                      {all_weights.begin() + 27, all_weights.end()}, {}),
                     c.forward_tolerance(DType::f32)) == "");
    CHECK(std::all_of(all.begin(), all.begin() + 4 * 42, [](double v) { return std::isnan(v); }));
    CHECK(std::all_of(all.begin() + 12 * 42, all.end(), [](double v) { return std::isnan(v); }));
}

TEST_CASE("conv2d: the same inputs give the same bits") {
    if (small_cases()) return;
    const Conv2dCase c{"", {9, 3, 12, 11}, {7, 3, 3, 3}, {.padding = {1, 1}}};
    const auto x = random_tensor(c.x, 1), gradient = random_tensor(c.out(), 2);
    const Tensor first = unwritten(c.weight, DType::f32), second = unwritten(c.weight, DType::f32);
    ops::conv2d_backward_weights(x.view(), gradient.view(), first.view(), c.options);
    ops::conv2d_backward_weights(x.view(), gradient.view(), second.view(), c.options);
    CHECK(first.to_vector<float>() == second.to_vector<float>());
}

TEST_CASE("conv2d: shape errors name the argument") {
    const Tensor x = zeros({2, 4, 5, 6}), weight = zeros({6, 4, 3, 3}), bias = zeros({6}), out = zeros({2, 6, 3, 4});
    const auto forward = [&](const Tensor& x1, const Tensor& w, const Tensor& b, const Tensor& y,
                             const ops::Conv2dParameters& options = {}) {
        ops::conv2d_forward(x1.view(), w.view(), b.view(), y.view(), options);
    };
    forward(x, weight, bias, out);
    CHECK_THROWS_WITH_AS(forward(zeros({4, 5, 6}), weight, bias, out),
                         "conv2d_forward: expected x of shape (N, C, H, W), got [4, 5, 6]", ShapeError);
    CHECK_THROWS_WITH_AS(forward(x, zeros({6, 4, 9}), bias, out),
                         "conv2d_forward: expected a weight of shape (O, C / groups, R, S), got [6, 4, 9]", ShapeError);
    CHECK_THROWS_WITH_AS(
        forward(x, zeros({6, 3, 3, 3}), bias, out),
        "conv2d_forward: expected a weight of 4 input channels for x [2, 4, 5, 6] in 1 group, got [6, 3, 3, 3]",
        ShapeError);
    CHECK_THROWS_WITH_AS(
        forward(x, weight, bias, out, {.groups = 4}),
        "conv2d_forward: expected groups that divide the channels of x and the filters, at least one of "
        "each, got 4 groups "
        "for x [2, 4, 5, 6] and weight [6, 4, 3, 3]",
        ValueError);
    CHECK_THROWS_AS(forward(x, weight, bias, out, {.groups = 0}), ValueError);
    CHECK_THROWS_AS(forward(x, zeros({0, 4, 3, 3}), zeros({0}), zeros({2, 0, 3, 4})), ValueError);
    CHECK_THROWS_WITH_AS(forward(x, weight, bias, out, {.stride = {1, 0}}),
                         "conv2d_forward: expected a stride of at least 1 along each axis, got [1, 0]", ValueError);
    CHECK_THROWS_WITH_AS(forward(x, weight, bias, out, {.padding = {-1, 0}}),
                         "conv2d_forward: expected a padding of at least 0 along each axis, got [-1, 0]", ValueError);
    CHECK_THROWS_AS(forward(x, weight, bias, out, {.dilation = {0, 1}}), ValueError);
    CHECK_THROWS_WITH_AS(forward(x, weight, bias, out, {.dilation = {3, 1}}),
                         "conv2d_forward: expected x at least as large as the filter, got x [2, 4, 5, 6] with "
                         "padding [0, 0] and weight "
                         "[6, 4, 3, 3] with dilation [3, 1]",
                         ShapeError);
    CHECK_THROWS_AS(forward(zeros({2, 4, 0, 6}), weight, bias, out), ShapeError);
    CHECK_THROWS_WITH_AS(forward(x, weight, zeros({5}), out), "conv2d_forward: expected bias of shape [6], got [5]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(forward(x, weight, bias, zeros({2, 6, 3, 3})),
                         "conv2d_forward: expected out of shape [2, 6, 3, 4], got [2, 6, 3, 3]", ShapeError);
    CHECK_THROWS_WITH_AS(forward(zeros({2, 4, 5, 6}, {DType::i32}), weight, bias, out),
                         "conv2d_forward: expected f32, f64, f16 or bf16 as x, got i32 (convert with .to(DType::f32))",
                         TypeError);
    CHECK_THROWS_AS(ops::conv2d_forward(ops::permuted(zeros({2, 4, 6, 5}).view(), {0, 1, 3, 2}), weight.view(),
                                        std::nullopt, out.view(), {}),
                    ShapeError);
    CHECK_THROWS_WITH_AS(ops::conv2d_backward_input(out.view(), weight.view(), zeros({2, 4, 5, 7}).view(), {}),
                         "conv2d_backward_input: expected out_gradient of shape [2, 6, 3, 5], got [2, 6, 3, 4]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(ops::conv2d_backward_weights(x.view(), out.view(), zeros({6, 4, 3, 2}).view(), {}),
                         "conv2d_backward_weights: expected out_gradient of shape [2, 6, 3, 5], got [2, 6, 3, 4]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(ops::conv2d_backward_bias(out.view(), zeros({5}).view()),
                         "conv2d_backward_bias: expected bias_gradient of shape [6], got [5]", ShapeError);
}

namespace {

/// Its answers differ from the defaults of the base class.
struct AnswersUnlikeDefaults final : ops::Conv2dStrategy {
    std::string_view name() const override { return "unlike"; }
    bool is_applicable(const ops::Conv2dProblem&, const Device&) const override { return true; }
    bool is_profitable(const ops::Conv2dProblem&, const Device&) const override { return false; }
    bool keeps_constants(const ops::Conv2dProblem&) const override { return true; }
    std::optional<ops::PackedCopy> packed_copy(const ops::Conv2dProblem&, const Device&,
                                               std::string_view) const override {
        return ops::PackedCopy{.kind = "panels", .bytes = 12};
    }
    std::vector<std::string> variants(const ops::Conv2dProblem&, const Device&) const override { return {"a", "b"}; }
    bool worth_measuring(const ops::Conv2dProblem&) const override { return false; }
    bool fuses_epilogue(const ops::Conv2dProblem&, const Device&, std::string_view) const override { return true; }
    bool error_is_relative_to_norm() const override { return true; }
    bool gives_bias_gradient() const override { return true; }
    void run(const ops::Conv2dProblem&, const ops::Conv2dOperands&, std::string_view) const override {}
};

}  // namespace

TEST_CASE("conv2d: a strategy that upcasts 16-bit floats repeats the answers of the strategy that it wraps") {
    static const AnswersUnlikeDefaults wrapped;
    static const ops::Conv2dUpcast strategy(wrapped, ops::Conv2dUpcast::When::profitable);
    const ops::Conv2dProblem problem =
        ops::conv2d_problem("test", ops::Conv2dDirection::forward, DType::f32, device().kernel_style(), {1, 2, 5, 5},
                            {3, 2, 3, 3}, ops::Conv2dParameters{});
    CHECK(strategy.name() == "unlike");
    CHECK(strategy.is_applicable(problem, device()));
    CHECK(!strategy.is_profitable(problem, device()));
    CHECK(strategy.keeps_constants(problem));
    REQUIRE(strategy.packed_copy(problem, device(), "").has_value());
    CHECK(strategy.packed_copy(problem, device(), "")->bytes == 12);
    CHECK(strategy.variants(problem, device()) == std::vector<std::string>{"a", "b"});
    CHECK(!strategy.worth_measuring(problem));
    CHECK(strategy.fuses_epilogue(problem, device(), ""));
    CHECK(strategy.error_is_relative_to_norm());
    CHECK(strategy.gives_bias_gradient());
    // The strategies of Winograd's transforms, wrapped as they are.
    for (const ops::Conv2dStrategy* each : ops::conv2d_strategies()) {
        CAPTURE(each->name());
        CHECK(each->error_is_relative_to_norm() == each->name().starts_with("winograd"));
    }
}
