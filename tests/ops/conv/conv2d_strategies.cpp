// Strategies of convolution in both kernel styles: values, variants, choice, Winograd.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/ops/conv/conv2d_helpers.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/strategies.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

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
