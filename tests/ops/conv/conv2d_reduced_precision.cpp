// Convolution of f16 and bf16: each strategy in both kernel styles, compared with plain C++ in double on the rounded
// operands. Accumulation is in f32, and a result is rounded once, after its epilogue.
#include <reference/conv2d_cases.hpp>
#include <tests/support/values.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Conv2dDirection;
using ops::Conv2dStrategy;

namespace {

using Values = std::vector<double>;

Tensor unwritten(const Shape& shape, DType dtype) {
    return Tensor(ops::View::make(default_device(), dtype, shape)).fill_(std::numeric_limits<double>::quiet_NaN());
}

/// Error of an f32 sum plus half an ulp of the result type. Some strategies lose precision of the largest results.
Tolerance once_rounded(DType dtype, Tolerance sum_error, const Conv2dStrategy& strategy, const Values& expected) {
    if (strategy.error_is_relative_to_norm())
        for (const double value : expected) sum_error.absolute = std::max(sum_error.absolute, 1e-5 * std::abs(value));
    // The smallest positive f16 is 2^-24.
    return {.absolute = sum_error.absolute * 1.01 + (dtype == DType::f16 ? 0x1p-25 : 0),
            .relative = sum_error.relative * 1.01 + (dtype == DType::f16 ? 0x1p-11 : 0x1p-8)};
}

/// Operands of one direction, and the output.
struct Filled {
    const Conv2dCase& c;
    DType dtype;
    Conv2dDirection direction;
    Tensor x = random_tensor(c.x, 1, dtype), weight = random_tensor(c.weight, 2, dtype),
           bias = random_tensor({c.weight[0]}, 3, dtype), gradient = random_tensor(c.out(), 4, dtype);

    [[nodiscard]] Shape shape() const {
        return direction == Conv2dDirection::forward          ? c.out()
               : direction == Conv2dDirection::backward_input ? c.x
                                                              : c.weight;
    }
    [[nodiscard]] Values expected() const {
        return direction == Conv2dDirection::forward ? conv2d_reference(c, values(x), values(weight), values(bias))
               : direction == Conv2dDirection::backward_input
                   ? conv2d_backward_input_reference(c, values(gradient), values(weight))
                   : conv2d_backward_weights_reference(c, values(x), values(gradient));
    }
    [[nodiscard]] Tolerance sum_error() const {
        return direction == Conv2dDirection::forward          ? c.forward_tolerance(DType::f32)
               : direction == Conv2dDirection::backward_input ? c.input_tolerance(DType::f32)
                                                              : c.weights_tolerance(DType::f32);
    }
    [[nodiscard]] ops::Conv2dProblem problem(KernelStyle style) const {
        return ops::conv2d_problem("test", direction, dtype, style, c.x, c.weight, c.options);
    }
    [[nodiscard]] ops::Conv2dOperands operands(const Tensor& result) const {
        switch (direction) {
            case Conv2dDirection::forward:
                return {x.view(), weight.view(), result.view(), bias.view()};
            case Conv2dDirection::backward_input:
                return {result.view(), weight.view(), gradient.view()};
            default:
                return {x.view(), result.view(), gradient.view()};
        }
    }
};

constexpr Conv2dDirection kDirections[] = {Conv2dDirection::forward, Conv2dDirection::backward_input,
                                           Conv2dDirection::backward_weights};

/// Returns false if the strategy is not applicable.
bool check(const Conv2dStrategy& strategy, KernelStyle style, const Filled& filled, const Values& expected,
           std::string_view variant = "") {
    const ops::Conv2dProblem problem = filled.problem(style);
    if (!strategy.is_applicable(problem, default_device())) return false;
    CAPTURE(strategy.name());
    CAPTURE(variant);
    CAPTURE(static_cast<int>(filled.direction));
    CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
    const Tensor result = unwritten(filled.shape(), filled.dtype);
    ops::Conv2dOperands operands = filled.operands(result);
    const bool gives_bias = filled.direction == Conv2dDirection::backward_weights && strategy.gives_bias_gradient();
    const Tensor for_bias = unwritten({filled.c.weight[0]}, filled.dtype);
    if (gives_bias) operands.bias = for_bias.view();
    strategy.run(problem, operands, variant);
    CHECK(difference(result, expected, once_rounded(filled.dtype, filled.sum_error(), strategy, expected)) == "");
    if (gives_bias) {
        const Values bias_gradient = conv2d_backward_bias_reference(filled.c, values(filled.gradient));
        CHECK(difference(for_bias, bias_gradient,
                         once_rounded(filled.dtype, filled.sum_error(), strategy, bias_gradient)) == "");
    }
    return true;
}

}  // namespace

TEST_CASE("conv2d: f16 and bf16 with each strategy and each applicable case, in both kernel styles") {
    std::map<std::string_view, int> checks;
    const auto cases = conv2d_cases();
    for (std::size_t at = 0; at < cases.size(); ++at) {
        const Conv2dCase& c = cases[at];
        // The algorithms are tested in f32; here only the 16-bit inputs and outputs: each strategy computes some cases.
        if (c.x[0] == 0 || at % 4 != 1 || (small_cases() && (!c.small || c.flops() > 2000))) continue;
        CAPTURE(c.name);
        const DType dtype = at % 8 == 1 ? DType::f16 : DType::bf16;
        CAPTURE(name_of(dtype));
        for (const Conv2dDirection direction : kDirections) {
            const Filled filled{c, dtype, direction};
            const Values expected = filled.expected();
            for (const Conv2dStrategy* strategy : ops::conv2d_strategies())
                for (const KernelStyle style : kernel_styles())
                    checks[strategy->name()] += check(*strategy, style, filled, expected) ? 1 : 0;
        }
    }
    for (const auto& [name, count] : checks) {
        CAPTURE(name);
        if (count == 0 && !has_kernel_style(KernelStyle::simd)) continue;  // of the simd strategies
        if (!small_cases()) CHECK(count > 0);
    }
}

TEST_CASE("conv2d: f16 and bf16 in each kernel that loads them, with every variant") {
    // One and several blocks of k, split-K or not, with strides, dilation, groups and padding.
    const Conv2dCase cases[] = {
        {"odd", {3, 5, 13, 11}, {35, 5, 3, 3}, {.padding = {1, 2}}},
        {"many channels", {2, 37, 9, 10}, {43, 37, 3, 3}, {.padding = {1, 1}}},
        {"many channels, strided", {2, 67, 15, 14}, {70, 67, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}}},
        {"dilation, groups", {2, 12, 14, 17}, {18, 6, 3, 2}, {.padding = {2, 1}, .dilation = {2, 3}, .groups = 2}},
        {"1x1", {3, 300, 5, 7}, {24, 300, 1, 1}}};
    struct Implementation {
        const Conv2dStrategy& strategy;
        KernelStyle style;
        std::vector<std::string_view> variants;
    };
    const Implementation implementations[] = {
        {ops::conv2d_gemm(), KernelStyle::simd, {"", "8x3", "12x1", "4x3"}},
        {ops::conv2d_implicit_gemm(), KernelStyle::simt, {"", "32x32", "32x32x2", "16x64x3"}},
        {ops::conv2d_direct(), kernel_styles().front(), {""}}};
    for (const Conv2dCase& c : cases)
        for (const DType dtype : {DType::f16, DType::bf16})
            for (const Conv2dDirection direction : kDirections) {
                if (small_cases() && c.name != "odd") continue;
                CAPTURE(c.name);
                CAPTURE(name_of(dtype));
                const Filled filled{c, dtype, direction};
                const Values expected = filled.expected();
                for (const Implementation& implementation : implementations)
                    for (const std::string_view variant : implementation.variants) {
                        if (!has_kernel_style(implementation.style) || (small_cases() && !variant.empty())) continue;
                        CHECK(check(implementation.strategy, implementation.style, filled, expected, variant));
                    }
            }
}

TEST_CASE("conv2d: f16 and bf16 epilogues are applied before rounding") {
    const Conv2dCase cases[] = {{"small", {2, 3, 6, 7}, {5, 3, 3, 3}, {.padding = {1, 0}}},
                                {"many channels", {2, 37, 9, 10}, {43, 37, 3, 3}, {.padding = {1, 1}}},
                                {"wide tiles", {1, 4, 16, 16}, {16, 4, 1, 1}},
                                {"depthwise", {2, 19, 9, 8}, {19, 1, 3, 3}, {.padding = {1, 1}, .groups = 19}}};
    std::map<std::string_view, int> checks;
    for (std::size_t at = 0; at < std::size(cases); ++at)
        for (const Conv2dDirection direction : {Conv2dDirection::forward, Conv2dDirection::backward_input}) {
            const Conv2dCase& c = cases[at];
            if (small_cases() && c.name != "small") continue;
            const bool forward = direction == Conv2dDirection::forward;
            const DType dtype = (at % 2 == 0) == forward ? DType::bf16 : DType::f16;
            CAPTURE(c.name);
            CAPTURE(name_of(dtype));
            const Filled filled{c, dtype, direction};
            const Shape shape = filled.shape();
            const Tensor residual = random_tensor(shape, 4, dtype), saved = random_tensor(shape, 5, dtype),
                         scale = random_tensor({shape[1]}, 7, dtype), shift = random_tensor({shape[1]}, 8, dtype);
            const Values plain = filled.expected(), added = values(residual), saved_values = values(saved),
                         scales = values(scale), shifts = values(shift);
            for (const KernelStyle style : kernel_styles())
                for (const Conv2dStrategy* strategy : ops::conv2d_strategies()) {
                    const ops::Conv2dProblem problem = filled.problem(style);
                    if (!strategy->is_applicable(problem, default_device()) ||
                        !strategy->fuses_epilogue(problem, default_device(), {}))
                        continue;
                    CAPTURE(strategy->name());
                    CAPTURE(static_cast<int>(style));
                    const auto check_epilogue = [&](const ops::KernelEpilogue& epilogue, const auto& change) {
                        const Tensor result = unwritten(shape, dtype);
                        ops::Conv2dOperands operands = filled.operands(result);
                        operands.epilogue = epilogue;
                        strategy->run(problem, operands, {});
                        ++checks[strategy->name()];
                        Values expected = plain;
                        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = change(expected[i], i);
                        Tolerance sum_error = filled.sum_error();
                        sum_error.absolute *= 4;  // sums may end near 0
                        CHECK(difference(result, expected, once_rounded(dtype, sum_error, *strategy, plain)) == "");
                    };
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
                    check_epilogue({.activation = ops::Function::relu, .saved = saved.view()},
                                   [&](double v, std::size_t i) { return saved_values[i] > 0 ? v : 0.0; });
                }
        }
    for (const std::string_view name : {"gemm", "implicit_gemm"})
        if (has_kernel_style(name == "gemm" ? KernelStyle::simd : KernelStyle::simt)) CHECK(checks[name] > 0);
}
