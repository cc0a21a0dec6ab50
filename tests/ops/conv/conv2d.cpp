#include <reference/conv2d_cases.hpp>
#include <tests/support/strategies.hpp>
#include <tests/support/values.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Conv2dDirection;

namespace {

bool has(DType dtype) { return dtype != DType::f64 || default_device().info().fp64; }

/// An unwritten output: a kernel that omits elements shows.
Tensor unwritten(const Shape& shape, DType dtype) {
    return Tensor(ops::View::make(default_device(), dtype, shape)).fill_(std::numeric_limits<double>::quiet_NaN());
}

ops::Conv2dProblem problem_of(const Conv2dCase& c, DType dtype, KernelStyle style, Conv2dDirection direction) {
    return ops::conv2d_problem("test", direction, dtype, style, c.x, c.weight, c.options);
}

/// Random operands of a case, and the expected result of each direction.
struct Filled {
    const Conv2dCase& c;
    DType dtype;
    Tensor x = random_tensor(c.x, 1, dtype), weight = random_tensor(c.weight, 2, dtype),
           bias = random_tensor({c.weight[0]}, 3, dtype);
    Tensor gradient = random_tensor(c.out(), 4, dtype);
    std::vector<double> out = conv2d_reference(c, values(x), values(weight), {});
    std::vector<double> biased_out = conv2d_reference(c, values(x), values(weight), values(bias));
    std::vector<double> dx = conv2d_backward_input_reference(c, values(gradient), values(weight));
    std::vector<double> dweight = conv2d_backward_weights_reference(c, values(x), values(gradient));
    std::vector<double> dbias = conv2d_backward_bias_reference(c, values(gradient));
};

template <class Visit>
void for_each_case(Visit visit) {
    for (const Conv2dCase& c : conv2d_cases())
        for (const DType dtype : floats()) {
            if (!has(dtype) || (small_cases() && (!c.small || c.flops() > (dtype == DType::f32 ? 3000 : 600))))
                continue;
            CAPTURE(c.name);
            CAPTURE(name_of(dtype));
            visit(Filled{c, dtype});
        }
}

/// Describes what is wrong with a result of `strategy`. Winograd transforms lose precision by cancellation: the error
/// is relative to the norm.
std::string wrong_by(const ops::Conv2dStrategy& strategy, DType dtype, const Tensor& result,
                     const std::vector<double>& expected, const Tolerance& allowed) {
    if (!strategy.name().starts_with("winograd")) return difference(result, expected, allowed);
    double error = 0, norm = 0;
    const std::vector<double> got = values(result);
    for (std::size_t i = 0; i < got.size(); ++i) {
        error += (got[i] - expected[i]) * (got[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    const double tolerance_of_norm = dtype == DType::f32 ? 1e-5 : 1e-14;
    return std::sqrt(error) <= tolerance_of_norm * std::sqrt(norm)
               ? std::string()
               : fmt::format("an error of {} relative to the norm", std::sqrt(error / norm));
}

/// All directions of one case by one strategy in one kernel style; returns how many were applicable.
int check(const ops::Conv2dStrategy& strategy, KernelStyle style, const Filled& filled, std::string_view variant = "") {
    CAPTURE(strategy.name());
    CAPTURE(variant);
    CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
    const auto& [c, dtype, x, weight, bias, gradient, out, biased_out, dx, dweight, dbias] = filled;
    int variants_checked = 0;
    const auto wrong = [&](const Tensor& result, const std::vector<double>& expected, const Tolerance& allowed) {
        return wrong_by(strategy, dtype, result, expected, allowed);
    };
    const auto run = [&](Conv2dDirection direction, const ops::Conv2dOperands& operands) {
        const auto problem = problem_of(filled.c, filled.dtype, style, direction);
        if (!strategy.is_applicable(problem, x.device())) return false;
        strategy.run(problem, operands, variant);
        ++variants_checked;
        return true;
    };
    const Tensor plain = unwritten(c.out(), dtype), biased = unwritten(c.out(), dtype);
    if (run(Conv2dDirection::forward, {x.view(), weight.view(), plain.view()}))
        CHECK(wrong(plain, out, c.forward_tolerance(dtype)) == "");
    if (run(Conv2dDirection::forward, {x.view(), weight.view(), biased.view(), bias.view()}))
        CHECK(wrong(biased, biased_out, c.forward_tolerance(dtype)) == "");
    const Tensor for_x = unwritten(c.x, dtype), for_weight = unwritten(c.weight, dtype);
    if (run(Conv2dDirection::backward_input, {for_x.view(), weight.view(), gradient.view()}))
        CHECK(wrong(for_x, dx, c.input_tolerance(dtype)) == "");
    const bool gives_bias = strategy.gives_bias_gradient();
    const Tensor for_bias = unwritten({c.weight[0]}, dtype);
    if (run(Conv2dDirection::backward_weights, {x.view(), for_weight.view(), gradient.view(),
                                                gives_bias ? std::optional(for_bias.view()) : std::nullopt})) {
        CHECK(wrong(for_weight, dweight, c.weights_tolerance(dtype)) == "");
        if (gives_bias) CHECK(difference(for_bias, dbias, c.weights_tolerance(dtype)) == "");
        // The same without it.
        const Tensor unbiased_weight = unwritten(c.weight, dtype);
        if (gives_bias) {
            strategy.run(problem_of(c, dtype, style, Conv2dDirection::backward_weights),
                         {x.view(), unbiased_weight.view(), gradient.view()}, variant);
            CHECK(values(unbiased_weight) == values(for_weight));
        }
    }
    return variants_checked;
}

}  // namespace

TEST_CASE("conv2d: each strategy computes each applicable case in both kernel styles") {
    std::map<std::string_view, int> checks;
    for_each_case([&](const Filled& filled) {
        if (filled.c.x[0] == 0) return;
        for (const ops::Conv2dStrategy* strategy : ops::conv2d_strategies()) {
            // Its larger tiles take long to compile for a CPU.
            if (strategy == &ops::conv2d_implicit_gemm() && filled.dtype == DType::f64 && !filled.c.small) continue;
            for (const KernelStyle style : kernel_styles()) checks[strategy->name()] += check(*strategy, style, filled);
        }
    });
    // Each case runs in each kernel style and in both types, if the device has them.
    const int kinds = static_cast<int>(kernel_styles().size()) * (has(DType::f64) ? 2 : 1),
              min_count = small_cases() ? 2 : 5;
    for (const auto& [name, count] : checks) {
        CAPTURE(name);
        if (count == 0 && !has_kernel_style(KernelStyle::simd)) continue;  // of the simd strategies
        CHECK(count >= min_count * kinds);
    }
}

TEST_CASE("conv2d: implicit_gemm with every tile, with and without split-K") {
    if (small_cases()) return;  // the same kernels as above
    const Conv2dCase odd{"odd", {3, 5, 13, 11}, {35, 5, 3, 3}, {.padding = {1, 2}}},
        even{"even", {2, 16, 12, 10}, {40, 8, 1, 3}, {.padding = {0, 1}, .groups = 2}};
    const Conv2dCase strided{"strided", {2, 16, 17, 20}, {24, 16, 3, 2}, {.stride = {2, 2}, .padding = {1, 0}}};
    const auto problem = problem_of({"", {16, 256, 64, 64}, {256, 256, 3, 3}, {}}, DType::f32, KernelStyle::simt,
                                    Conv2dDirection::forward);
    const std::vector<std::string> variants = ops::conv2d_implicit_gemm().variants(problem, default_device());
    CHECK(variants.size() == 7);
    for (const Conv2dCase& c : {odd, even}) {
        const Filled filled{c, DType::f32};
        for (std::size_t i = 0; i < variants.size(); ++i) {
            // Each one has four kernels that take seconds to compile for a CPU: one of the two cases per tile.
            if (!all_cases() && (i % 2 == 0) != (c.name == odd.name)) continue;
            CHECK(check(ops::conv2d_implicit_gemm(), KernelStyle::simt, filled, variants[i]) == 4);
        }
    }
    for (const Conv2dCase& c : {odd, even, strided})
        for (const DType dtype : floats()) {
            if (!has(dtype) || (dtype == DType::f64 && c.name != "odd")) continue;
            const Filled filled{c, dtype};
            for (const char* variant : {"32x32x2", "16x64x3"})
                CHECK(check(ops::conv2d_implicit_gemm(), KernelStyle::simt, filled, variant) == 4);
        }
}

TEST_CASE("conv2d: every variant of the simd strategies") {
    if (!has_kernel_style(KernelStyle::simd)) return;
    const Conv2dCase few{"few positions", {2, 5, 13, 11}, {35, 5, 3, 3}, {.padding = {1, 2}}},
        many{"many positions", {7, 4, 19, 18}, {9, 4, 3, 3}, {.padding = {1, 1}}},
        strided{"strided", {2, 6, 15, 14}, {10, 6, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}}};
    std::map<std::string, int> checks;
    for (const Conv2dCase& c : {few, many, strided}) {
        if (small_cases() && c.name != "few positions") continue;
        const Filled filled{c, DType::f32};
        for (const ops::Conv2dStrategy* strategy : ops::conv2d_strategies()) {
            if (small_cases() && strategy != &ops::conv2d_winograd4()) continue;
            std::vector<std::string> names;
            for (const auto direction :
                 {Conv2dDirection::forward, Conv2dDirection::backward_input, Conv2dDirection::backward_weights}) {
                const auto problem = problem_of(c, DType::f32, KernelStyle::simd, direction);
                if (!strategy->is_applicable(problem, default_device())) continue;
                for (const std::string& name : strategy->variants(problem, default_device()))
                    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
            }
            for (const std::string& name : names)
                checks[fmt::format("{} {}", strategy->name(), name)] +=
                    check(*strategy, KernelStyle::simd, filled, name);
        }
    }
    for (const char* name : {"winograd4 own", "winograd4 apart"}) CHECK(checks[name] > 0);
    const auto ends = [&](std::string_view end) {
        return std::ranges::any_of(checks, [&](const auto& item) { return item.first.ends_with(end); });
    };
    if (!small_cases()) CHECK((ends(" packed") && ends(" in_place")));
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

TEST_CASE("conv2d: phases of backward_input do not overwrite each other's rows") {
    // Tiles that begin after the end of a row, for any vector width: the memory there is a row of another phase.
    for (std::int64_t width = 4; width < (small_cases() ? 12 : 40); ++width)
        for (const KernelStyle style : kernel_styles()) {
            const Conv2dCase c{
                "", {1, 2, 9, width}, {2, 2, 2, 3}, {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}}};
            CAPTURE(width);
            const ops::KernelStyleScope scope(style);
            const auto gradient = random_tensor(c.out(), 1), weight = random_tensor(c.weight, 2);
            const Tensor dx = unwritten(c.x, DType::f32);
            ops::conv2d_tiled().run(problem_of(c, DType::f32, style, Conv2dDirection::backward_input),
                                    {dx.view(), weight.view(), gradient.view()});
            CHECK(difference(dx, conv2d_backward_input_reference(c, values(gradient), values(weight)),
                             c.input_tolerance(DType::f32)) == "");
        }
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

TEST_CASE("conv2d: packed constant weights are cached until their version changes") {
    const Conv2dCase c{"", {2, 20, 14, 13}, {35, 20, 3, 3}, {.padding = {1, 1}}};
    if (!has_kernel_style(KernelStyle::simd)) return;
    const ops::KernelStyleScope scope(KernelStyle::simd);
    const auto x = random_tensor(c.x, 1), weight = random_tensor(c.weight, 2), other = random_tensor(c.weight, 3),
               out = unwritten(c.out(), DType::f32);
    const auto before = conv2d_reference(c, values(x), values(weight), {}),
               after = conv2d_reference(c, values(x), values(other), {});
    const test::Environment named("DECLIVITY_CONV2D", "winograd4");
    const auto wrong = [&](const std::vector<double>& expected, ops::OperandUse use) {
        ops::conv2d_forward(x.view(), weight.view(), std::nullopt, out.view(), c.options, {}, use);
        return wrong_by(ops::conv2d_winograd4(), DType::f32, out, expected, {});
    };
    for (int use = 0; use < 2; ++use) CHECK(wrong(before, ops::OperandUse::constant) == "");
    ops::copy(other.view(), weight.view());  // without a version bump
    CHECK(wrong(before, ops::OperandUse::constant) == "");
    CHECK(wrong(after, ops::OperandUse::variable) == "");
    weight.bump_version();
    CHECK(wrong(after, ops::OperandUse::constant) == "");
    CHECK(wrong(after, ops::OperandUse::constant) == "");
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

TEST_CASE("conv2d: the same inputs give the same bits") {
    if (small_cases()) return;
    const Conv2dCase c{"", {9, 3, 12, 11}, {7, 3, 3, 3}, {.padding = {1, 1}}};
    const auto x = random_tensor(c.x, 1), gradient = random_tensor(c.out(), 2);
    const Tensor first = unwritten(c.weight, DType::f32), second = unwritten(c.weight, DType::f32);
    ops::conv2d_backward_weights(x.view(), gradient.view(), first.view(), c.options);
    ops::conv2d_backward_weights(x.view(), gradient.view(), second.view(), c.options);
    CHECK(first.to_vector<float>() == second.to_vector<float>());
}

TEST_CASE("conv2d: DECLIVITY_CONV2D selects the strategy") {
    const Conv2dCase small{"", {1, 1, 3, 3}, {1, 1, 2, 2}}, large{"", {1, 1, 13, 12}, {2, 1, 12, 12}};
    const auto choice = [](const Conv2dCase& c) {
        return ops::choose_conv2d(problem_of(c, DType::f32, KernelStyle::simd, Conv2dDirection::forward),
                                  default_device())
            .strategy->name();
    };
    {
        const test::Environment named("DECLIVITY_CONV2D", "direct");
        CHECK(choice(small) == "direct");
    }
    {
        const test::Environment named("DECLIVITY_CONV2D", "tiled");
        CHECK(choice(small) == "tiled");
        CHECK(choice(large) != "tiled");  // not applicable
    }
    const test::Environment unknown("DECLIVITY_CONV2D", "fft");
    CHECK_THROWS_WITH_AS(
        choice(small),
        ("DECLIVITY_CONV2D: expected one of " + names_of(ops::conv2d_strategies()) + ", got \"fft\"").c_str(),
        ValueError);
    CHECK(names_of(ops::conv2d_strategies()).starts_with("depthwise_channels_last, depthwise, "));
}

TEST_CASE("conv2d: Winograd's error stays small over many channels, and it can be switched off") {
    if (small_cases()) return;
    const Conv2dCase c{"", {1, 256, 20, 20}, {16, 256, 3, 3}, {.padding = {1, 1}}};
    // Values with a nonzero mean, whose sums are large where the transforms subtract.
    const Tensor x = random_tensor(c.x, 1, DType::f32, 0, 2), weight = random_tensor(c.weight, 2);
    const std::vector<double> reference = conv2d_reference(c, values(x), values(weight), {});
    const auto small = [](const Tensor& result, const std::vector<double>& expected) {
        double error = 0, norm = 0;
        const std::vector<double> got = values(result);
        for (std::size_t i = 0; i < got.size(); ++i) {
            error += (got[i] - expected[i]) * (got[i] - expected[i]);
            norm += expected[i] * expected[i];
        }
        CHECK(std::sqrt(error / norm) < 1e-4);
    };
    for (const int tile : {2, 4}) {
        CAPTURE(tile);
        const Tensor out = unwritten(c.out(), DType::f32);
        (tile == 2 ? ops::conv2d_winograd2() : ops::conv2d_winograd4())
            .run(problem_of(c, DType::f32, KernelStyle::simd, Conv2dDirection::forward),
                 {x.view(), weight.view(), out.view()});
        small(out, reference);
    }
    // Weight gradients are the longest sums: over all positions.
    const Conv2dCase many{"", {40, 9, 35, 33}, {8, 9, 3, 3}, {.padding = {1, 1}}};
    const Tensor images = random_tensor(many.x, 3, DType::f32, 0, 2), gradient = random_tensor(many.out(), 4),
                 result = unwritten(many.weight, DType::f32);
    ops::conv2d_winograd4().run(problem_of(many, DType::f32, KernelStyle::simd, Conv2dDirection::backward_weights),
                                {images.view(), result.view(), gradient.view()});
    small(result, conv2d_backward_weights_reference(many, values(images), values(gradient)));
    const Conv2dCase large{"", {16, 128, 28, 28}, {128, 128, 3, 3}, {.padding = {1, 1}}};
    const Device device = default_device();
    const ops::Conv2dProblem problem = problem_of(large, DType::f32, KernelStyle::simd, Conv2dDirection::forward);
    CHECK(ops::conv2d_winograd4().is_profitable(problem, device));
    CHECK(ops::conv2d_winograd4().is_profitable(
        problem_of(large, DType::f32, KernelStyle::simd, Conv2dDirection::backward_weights), device));
    CHECK(!ops::conv2d_winograd2().is_applicable(
        problem_of(large, DType::f32, KernelStyle::simd, Conv2dDirection::backward_weights), device));
    CHECK(!ops::conv2d_winograd4().is_profitable(
        problem_of(large, DType::f64, KernelStyle::simd, Conv2dDirection::forward), device));
    CHECK(!ops::conv2d_winograd4().is_profitable(
        problem_of(c, DType::f32, KernelStyle::simd, Conv2dDirection::backward_input), device));
    const test::Environment without("DECLIVITY_WINOGRAD", "0");
    CHECK(!ops::conv2d_winograd4().is_applicable(
        problem_of(large, DType::f32, KernelStyle::simd, Conv2dDirection::forward), device));
    CHECK(!ops::choose_conv2d(problem_of(large, DType::f32, KernelStyle::simd, Conv2dDirection::forward), device)
               .strategy->name()
               .starts_with("winograd"));
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
