// no-oclgrind: it runs the cases of the catalogue, like tests/functions/catalogue.cpp
// Every function of the catalogue in f16 and bf16: intermediate results stay in f32, so that the result is that of f32,
// rounded once, with and without fusion, and with and without gradients.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"

using namespace declivity;
using namespace declivity::test;
using namespace declivity::test::catalogue;

namespace {

double unit_of(DType dtype) { return dtype == DType::f16 ? 0x1p-10 : 0x1p-7; }

double largest(const Values& values) {
    double max_abs = 0;
    for (const double value : values)
        if (std::isfinite(value)) max_abs = std::max(max_abs, std::abs(value));
    return max_abs;
}

/// Returns whether the case calls several functions, each of which rounds.
bool is_composite(const Case& test_case) {
    const std::string name = test_case.name;
    return name.starts_with("linalg::") || name.ends_with("_window") || name.ends_with("_mean") ||
           name == "operator+" || name == "operator-" || name == "operator/" || name == "fft::fftfreq" ||
           name == "audio::mel_filter_bank";
}

/// Half an ulp, plus the error of f32. Numbers too small for f16 round to its smallest.
Tolerance rounding_tolerance(DType dtype, const Case& test_case, const Values& expected) {
    const double unit = unit_of(dtype);
    if (is_composite(test_case)) return {.absolute = 8 * unit * largest(expected), .relative = 16 * unit};
    return {.absolute = 1e-6 * test_case.terms * largest(expected) + (dtype == DType::f16 ? 0x1p-25 : 0),
            .relative = unit / 2 * 1.002};
}

Tensors captured_inputs(const Case& test_case, const Tensors& inputs) {
    Tensors leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        leaves.push_back(inputs[i].detach());
        if (test_case.differentiable && test_case.inputs[i].kind == Kind::real) leaves[i].set_requires_grad();
    }
    return leaves;
}

}  // namespace

TEST_CASE("reduced precision: every function of the catalogue rounds its result once") {
    const std::vector<Case> all = cases();
    for (std::size_t at = 0; at < all.size(); ++at) {
        const Case& test_case = all[at];
        if (!test_case.reduced_precision || test_case.random || is_other_turn(at)) continue;
        CAPTURE(test_case.name);
        const Columns columns = inputs_of(test_case);
        for (const DType dtype : {DType::f16, DType::bf16}) {
            if (small_cases() && (at % 2 == 0) == (dtype == DType::f16)) continue;
            CAPTURE(name_of(dtype));
            const Tensors reduced = tensors_of(test_case, columns, dtype, Layout::dense);
            Tensors upcast;
            for (const Tensor& input : reduced)
                upcast.push_back(is_16bit_float(input.dtype()) ? input.to(DType::f32) : input);
            const Tensor exact = test_case.call(upcast);
            const Values expected = values(exact);
            const auto agrees = [&](const Tensor& got) {
                if (is_floating(got.dtype()))
                    return difference(got, expected, rounding_tolerance(got.dtype(), test_case, expected));
                return difference(got, expected, {});
            };
            {
                const ops::FusionScope unfused(false);
                CHECK(agrees(test_case.call(reduced)) == "");
            }
            const Tensors leaves = captured_inputs(test_case, reduced),
                          upcast_leaves = captured_inputs(test_case, upcast);
            const Tensor out = test_case.call(leaves);
            CHECK(agrees(out) == "");
            if (!test_case.differentiable || !out.requires_grad()) continue;
            const Tensor out_gradient = random_tensor(out.shape(), 7, out.dtype());
            test_case.call(upcast_leaves).backward(out_gradient.to(exact.dtype()));
            out.backward(out_gradient);
            // Backward uses the rounded values.
            for (std::size_t i = 0; i < leaves.size(); ++i) {
                CAPTURE(i);
                if (!upcast_leaves[i].grad().defined()) continue;
                const Values expected_gradient = values(upcast_leaves[i].grad());
                CHECK(difference(
                          leaves[i].grad(), expected_gradient,
                          {.absolute = 2 * unit_of(dtype) * (1e-3 + largest(expected_gradient)), .relative = 0}) == "");
            }
        }
    }
}
