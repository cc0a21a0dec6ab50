// One product compared with a plain reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/matmul.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <reference/matmul_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/strategies.hpp>
#include <tests/support/values.hpp>

#include "ops/matmul/matmul_strategies.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::test {

using ops::View;

/// A dense view in the middle of a buffer of NaN, which detects writes outside of the view and reads before the first
/// write.
struct Guarded {
    View guarded, out;
    explicit Guarded(const Shape& shape, DType dtype)
        : guarded(View::make(device(), dtype, {shape.numel() + 64})), out(guarded) {
        ops::fill(guarded, NAN);
        out.offset = 32;
        out.shape = shape;
        out.strides = dense_strides(shape);
    }
    [[nodiscard]] bool intact() const {
        const auto all = values(Tensor(guarded));
        return std::all_of(all.begin(), all.begin() + 32, [](double x) { return std::isnan(x); }) &&
               std::all_of(all.end() - 32, all.end(), [](double x) { return std::isnan(x); });
    }
};

inline void check(const MatmulCase& test_case, DType dtype) {
    CAPTURE(test_case.name());
    CAPTURE(name_of(dtype));
    const auto a = matmul_operand(test_case.a, test_case.batch, test_case.m, test_case.k, 1, dtype),
               b = matmul_operand(test_case.b, test_case.batch, test_case.k, test_case.n, 2, dtype);
    const Guarded result({test_case.batch, test_case.m, test_case.n}, dtype);
    ops::matmul(a.view, b.view, result.out);
    CHECK(difference(Tensor(result.out), matmul_reference(test_case, a.elements, b.elements),
                     test_case.allowed(dtype)) == "");
    CHECK(result.intact());
}

/// A scope of style simt for strategies that are made for it alone; otherwise none, which is the style of the device.
inline std::optional<ops::KernelStyleScope> kernel_style_for(const ops::MatmulStrategy& strategy) {
    const auto is_applicable = [&](KernelStyle style) {
        ops::MatmulProblem problem{.style = style, .a_strides = {1, 1, 1}, .b_strides = {1, 1, 1}};
        ops::MatmulProblem sum_of_two = problem;
        sum_of_two.k = 2;
        return strategy.is_applicable(problem, device()) || strategy.is_applicable(sum_of_two, device());
    };
    if (is_applicable(ops::kernel_style_of(device())) || !is_applicable(KernelStyle::simt)) return std::nullopt;
    return std::optional<ops::KernelStyleScope>(std::in_place, KernelStyle::simt);
}

inline const ops::MatmulStrategy& strategy_of(std::string_view name) {
    for (const ops::MatmulStrategy* strategy : ops::matmul_strategies())
        if (strategy->name() == name) return *strategy;
    throw ValueError("no strategy " + std::string(name));
}

}  // namespace declivity::test
