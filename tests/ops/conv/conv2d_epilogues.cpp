// Epilogues of convolutions: fused into the kernels, and unfused.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numbers>
#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <tests/ops/conv/conv2d_helpers.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/strategies.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

TEST_CASE("conv2d: a fused epilogue") {
    const Conv2dCase c{"", {2, 3, 6, 7}, {4, 3, 3, 3}};
    const auto x = random_tensor(c.x, 1), weight = random_tensor(c.weight, 2);
    const Tensor out = unwritten(c.out(), DType::f32);
    const auto result = ops::Expression::operator_result(DType::f32, c.out());
    ops::conv2d_forward(x.view(), weight.view(), std::nullopt, out.view(), c.options,
                        ops::epilogue_of(ops::Expression::apply(ops::Function::relu, std::array{result})));
    auto expected = conv2d_reference(c, values(x), values(weight), {});
    for (double& value : expected) value = std::max(value, 0.0);
    CHECK(difference(out, expected, c.forward_tolerance(DType::f32)) == "");
}

TEST_CASE("conv2d: backward_input with fused and unfused gradients of the preceding function") {
    const Conv2dCase c{"", {2, 3, 7, 6}, {4, 3, 3, 3}, {.padding = {1, 1}}};
    const auto dout = random_tensor(c.out(), 1), weight = random_tensor(c.weight, 2), x = random_tensor(c.x, 3),
               residual = random_tensor(c.x, 4);
    const auto plain = conv2d_backward_input_reference(c, values(dout), values(weight)), pre_activation = values(x),
               added = values(residual);
    const auto result = ops::Expression::operator_result(DType::f32, c.x);
    const auto sum = ops::Expression::apply(ops::Function::add, std::array{result, ops::Expression(residual.view())});
    for (const char* strategy : {"gemm", "direct"})
        for (const ops::Function function : {ops::Function::relu, ops::Function::gelu}) {
            CAPTURE(strategy);
            const ops::KernelStyleScope scope(kernel_styles().front());
            const test::Environment named("DECLIVITY_CONV2D", strategy);
            const Tensor out = unwritten(c.x, DType::f32);
            const std::array<ops::Expression, 1> input{x.view()};
            ops::conv2d_backward_input(
                dout.view(), weight.view(), out.view(), c.options,
                ops::epilogue_of(ops::Expression::gradient(function, 0, sum, input, x.view(), {})));
            auto expected = plain;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const double v = pre_activation[i], cumulative = 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
                const double slope = function == ops::Function::relu
                                         ? v > 0 ? 1 : 0
                                         : cumulative + v * std::exp(-v * v / 2) / std::sqrt(2 * std::numbers::pi);
                expected[i] = (expected[i] + added[i]) * slope;
            }
            CHECK(difference(out, expected, c.input_tolerance(DType::f32)) == "");
        }
}

TEST_CASE("conv2d: epilogues, fused into the kernels and unfused") {
    const Conv2dCase plain{"", {2, 3, 6, 7}, {4, 3, 3, 3}}, even{"", {1, 5, 4, 4}, {8, 5, 1, 1}},
        depthwise{"", {2, 3, 9, 8}, {3, 1, 3, 3}, {.padding = {1, 1}, .groups = 3}};
    for (const Conv2dCase& c : {plain, even, depthwise})
        for (const KernelStyle style : kernel_styles()) {
            if (small_cases() && (style == KernelStyle::simd || &c == &even)) continue;
            const ops::KernelStyleScope scope(style);
            const Shape shape = c.out();
            const auto x = random_tensor(c.x, 1), weight = random_tensor(c.weight, 2),
                       bias = random_tensor({c.weight[0]}, 3), residual = random_tensor(shape, 4);
            const auto columns = random_tensor({shape[3]}, 5);
            const auto expected = conv2d_reference(c, values(x), values(weight), values(bias));
            const auto added = values(residual), by_column = values(columns);
            const auto apply = [](ops::Function function, std::initializer_list<ops::Expression> inputs) {
                return ops::Expression::apply(function, std::vector<ops::Expression>(inputs));
            };
            const ops::Expression result = ops::Expression::operator_result(DType::f32, shape);
            const auto check_epilogue = [&](const ops::Expression& epilogue, const auto& host_epilogue) {
                const Tensor out = unwritten(shape, DType::f32);
                ops::conv2d_forward(x.view(), weight.view(), bias.view(), out.view(), c.options,
                                    ops::epilogue_of(epilogue));
                auto all = expected;
                for (std::size_t i = 0; i < all.size(); ++i) all[i] = host_epilogue(all[i], i);
                CHECK(difference(out, all, c.forward_tolerance(DType::f32)) == "");
            };
            check_epilogue(apply(ops::Function::relu, {apply(ops::Function::add, {result, residual.view()})}),
                           [&](double v, std::size_t i) { return std::max(0.0, v + added[i]); });
            check_epilogue(apply(ops::Function::tanh, {result}), [](double v, std::size_t) { return std::tanh(v); });
            check_epilogue(apply(ops::Function::add, {result, columns.view()}),
                           [&](double v, std::size_t i) { return v + by_column[i % by_column.size()]; });
            if (small_cases()) continue;
            for (const char* variant : {"32x32", "32x32x2"}) {
                const auto problem = problem_of(c, DType::f32, KernelStyle::simt, Conv2dDirection::forward);
                const Tensor out = unwritten(shape, DType::f32);
                const ops::KernelEpilogue epilogue{
                    .alpha = 2, .beta = -1, .residual = residual.view(), .activation = ops::Function::tanh};
                REQUIRE(ops::conv2d_implicit_gemm().fuses_epilogue(problem, x.device(), variant));
                ops::conv2d_implicit_gemm().run(problem, {x.view(), weight.view(), out.view(), bias.view(), epilogue},
                                                variant);
                auto all = expected;
                for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::tanh(2 * all[i] - added[i]);
                CHECK(difference(out, all, c.forward_tolerance(DType::f32)) == "");
            }
        }
}

TEST_CASE("conv2d: epilogues in each kernel that supports them") {
    const std::vector<Conv2dCase> cases{
        {"small", {2, 3, 6, 7}, {5, 3, 3, 3}, {.padding = {1, 0}}},
        {"wide", {1, 18, 23, 61}, {35, 18, 3, 3}, {.padding = {1, 1}}},
        {"small images", {13, 5, 6, 7}, {21, 5, 3, 3}, {.padding = {1, 1}}},
        {"strided, groups", {3, 6, 15, 18}, {14, 3, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
        {"strided", {2, 7, 14, 13}, {9, 7, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
        {"1x1", {5, 20, 7, 7}, {33, 20, 1, 1}},
        {"depthwise", {2, 19, 9, 8}, {19, 1, 3, 3}, {.padding = {1, 1}, .groups = 19}},
        {"depthwise, strided", {2, 37, 40, 44}, {37, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 37}}};
    for (const Conv2dDirection direction : {Conv2dDirection::forward, Conv2dDirection::backward_input}) {
        const bool forward = direction == Conv2dDirection::forward;
        CAPTURE(forward);
        std::map<std::string_view, int> checks;
        for (const Conv2dCase& c : cases) {
            if (small_cases() && c.name != "small" && c.name != "depthwise") continue;
            CAPTURE(c.name);
            const Shape shape = forward ? c.out() : c.x;
            const auto x = random_tensor(c.x, 1), weight = random_tensor(c.weight, 2),
                       bias = random_tensor({c.weight[0]}, 3), dout = random_tensor(c.out(), 6);
            const auto residual = random_tensor(shape, 4), saved = random_tensor(shape, 5);
            const auto plain = forward ? conv2d_reference(c, values(x), values(weight), values(bias))
                                       : conv2d_backward_input_reference(c, values(dout), values(weight));
            const auto added = values(residual), saved_values = values(saved);
            for (const KernelStyle style : kernel_styles())
                for (const ops::Conv2dStrategy* strategy : ops::conv2d_strategies()) {
                    CAPTURE(strategy->name());
                    const auto problem = problem_of(c, DType::f32, style, direction);
                    if (!strategy->is_applicable(problem, x.device()) ||
                        !strategy->fuses_epilogue(problem, x.device(), {}))
                        continue;
                    const auto check_epilogue = [&](const ops::KernelEpilogue& epilogue, const auto& expected) {
                        const Tensor result = unwritten(shape, DType::f32);
                        if (forward)
                            strategy->run(problem, {x.view(), weight.view(), result.view(), bias.view(), epilogue});
                        else
                            strategy->run(problem, {result.view(), weight.view(), dout.view(), std::nullopt, epilogue});
                        ++checks[strategy->name()];
                        auto all = plain;
                        for (std::size_t i = 0; i < all.size(); ++i) all[i] = expected(all[i], i);
                        CHECK(wrong_by(*strategy, DType::f32, result, all,
                                       forward ? c.forward_tolerance(DType::f32) : c.input_tolerance(DType::f32)) ==
                              "");
                    };
                    const ops::KernelEpilogue sum{
                        .alpha = 0.5, .beta = -1.5, .residual = residual.view(), .activation = ops::Function::relu};
                    const auto scaled_sum = [&](double v, std::size_t i) { return 0.5 * v - 1.5 * added[i]; };
                    if (forward || !small_cases())
                        check_epilogue(sum, [&](double v, std::size_t i) { return std::max(0.0, scaled_sum(v, i)); });
                    ops::KernelEpilogue back = sum;
                    back.saved = saved.view();
                    if (!forward || !small_cases())
                        check_epilogue(back, [&](double v, std::size_t i) {
                            return saved_values[i] > 0 ? scaled_sum(v, i) : 0.0;
                        });
                    const Tensor scale = random_tensor({shape[1]}, 7), shift = random_tensor({shape[1]}, 8);
                    const auto scales = values(scale), shifts = values(shift);
                    const auto channel = [&](std::size_t i) {
                        return i / static_cast<std::size_t>(shape[2] * shape[3]) % scales.size();
                    };
                    check_epilogue({.alpha = 2,
                                    .scale = scale.view(),
                                    .shift = shift.view(),
                                    .residual = residual.view(),
                                    .activation = ops::Function::relu},
                                   [&](double v, std::size_t i) {
                                       return std::max(0.0, 2 * v * scales[channel(i)] + shifts[channel(i)] + added[i]);
                                   });
                    if (small_cases()) continue;
                    check_epilogue({.activation = ops::Function::tanh},
                                   [](double v, std::size_t) { return std::tanh(v); });
                    check_epilogue(
                        {.activation = ops::Function::tanh, .saved = saved.view()},
                        [&](double v, std::size_t i) { return v * (1 - saved_values[i] * saved_values[i]); });
                }
        }
        for (const std::string_view name : {"depthwise_channels_last", "depthwise", "depthwise_direct", "winograd4",
                                            "banded", "gemm", "implicit_gemm", "col2im"}) {
            if (forward && name == "col2im") continue;
            CAPTURE(name);
            if (checks[name] == 0 && !has_kernel_style(KernelStyle::simd)) continue;
            CHECK(checks[name] >= (small_cases() ? 1 : 4));
        }
    }
}
