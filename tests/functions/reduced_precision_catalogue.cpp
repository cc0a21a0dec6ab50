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
    double most = 0;
    for (const double value : values)
        if (std::isfinite(value)) most = std::max(most, std::abs(value));
    return most;
}

/// Returns whether the case calls several functions, each of which rounds.
bool calls_several(const Case& one) {
    const std::string name = one.name;
    return name.starts_with("linalg::") || name.ends_with("_window") || name.ends_with("_mean") ||
           name == "operator+" || name == "operator-" || name == "operator/" || name == "fft::fftfreq" ||
           name == "audio::mel_filter_bank";
}

/// Half an ulp, plus the error of f32. Numbers too small for f16 round to its smallest.
Tolerance once(DType dtype, const Case& one, const Values& wanted) {
    const double unit = unit_of(dtype);
    if (calls_several(one)) return {.absolute = 8 * unit * largest(wanted), .relative = 16 * unit};
    return {.absolute = 1e-6 * one.terms * largest(wanted) + (dtype == DType::f16 ? 0x1p-25 : 0),
            .relative = unit / 2 * 1.002};
}

Tensors captured_inputs(const Case& one, const Tensors& inputs) {
    Tensors leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        leaves.push_back(inputs[i].detach());
        if (one.differentiable && one.inputs[i].kind == Kind::real) leaves[i].set_requires_grad();
    }
    return leaves;
}

}  // namespace

TEST_CASE("reduced precision: every function of the catalogue rounds its result once") {
    const std::vector<Case> all = cases();
    for (std::size_t at = 0; at < all.size(); ++at) {
        const Case& one = all[at];
        if (!one.reduced_precision || one.random || of_another_turn(at)) continue;
        CAPTURE(one.name);
        const Columns columns = inputs_of(one);
        for (const DType dtype : {DType::f16, DType::bf16}) {
            if (small_cases() && (at % 2 == 0) == (dtype == DType::f16)) continue;
            CAPTURE(name_of(dtype));
            const Tensors narrow = tensors_of(one, columns, dtype, Layout::dense);
            Tensors wide;
            for (const Tensor& input : narrow)
                wide.push_back(is_16bit_float(input.dtype()) ? input.to(DType::f32) : input);
            const Tensor exact = one.call(wide);
            const Values wanted = values(exact);
            const auto agrees = [&](const Tensor& got) {
                if (is_floating(got.dtype())) return difference(got, wanted, once(got.dtype(), one, wanted));
                return difference(got, wanted, {});
            };
            {
                const ops::FusionScope alone(false);
                CHECK(agrees(one.call(narrow)) == "");
            }
            const Tensors leaves = captured_inputs(one, narrow), wide_leaves = captured_inputs(one, wide);
            const Tensor out = one.call(leaves);
            CHECK(agrees(out) == "");
            if (!one.differentiable || !out.requires_grad()) continue;
            const Tensor by = random_tensor(out.shape(), 7, out.dtype());
            one.call(wide_leaves).backward(by.to(exact.dtype()));
            out.backward(by);
            // Backward uses the rounded values.
            for (std::size_t i = 0; i < leaves.size(); ++i) {
                CAPTURE(i);
                if (!wide_leaves[i].grad().defined()) continue;
                const Values slopes = values(wide_leaves[i].grad());
                CHECK(difference(leaves[i].grad(), slopes,
                                 {.absolute = 2 * unit_of(dtype) * (1e-3 + largest(slopes)), .relative = 0}) == "");
            }
        }
    }
}
