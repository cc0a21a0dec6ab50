// lstm_cell: sizes, both kernel styles, compared with its decomposition; a sequence, and optional arguments.
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/contract.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Tensors = std::vector<Tensor>;

/// Hidden state after `steps` of a sequence, and the cell state.
Tensors sequence(const Tensors& in, int steps) {
    LstmState state{in[1], in[2]};
    for (int t = 0; t < steps; ++t) state = lstm_cell(in[0], state, in[3], in[4], in[5], in[6]);
    return {state.hidden, state.cell};
}

Tensors inputs(std::int64_t rows, std::int64_t width, std::int64_t units, DType dtype) {
    const std::vector<Shape> shapes{{rows, width},      {rows, units}, {rows, units}, {4 * units, width},
                                    {4 * units, units}, {4 * units},   {4 * units}};
    Tensors all;
    std::uint64_t seed = 0;
    for (const Shape& shape : shapes) all.push_back(random_tensor(shape, ++seed, dtype).set_requires_grad());
    return all;
}

}  // namespace

TEST_CASE("lstm_cell: one step of one unit") {
    // All gates are sigmoid(0) = 0.5, and the new value is tanh(1): cell = 0.5 * 1 + 0.5 * 0.761594.
    const Tensor x = tensor({1}, {1, 1}), hidden = tensor({0}, {1, 1}), cell = tensor({1}, {1, 1}),
                 weight_ih = tensor({0, 0, 1, 0}, {4, 1}), weight_hh = zeros({4, 1});
    const LstmState next = lstm_cell(x, {hidden, cell}, weight_ih, weight_hh);
    CHECK(difference(next.cell, {0.880797}, {1e-5}) == "");
    CHECK(difference(next.hidden, {0.353409}, {1e-5}) == "");  // 0.5 tanh(cell)
}

TEST_CASE("lstm_cell: a sequence matches its decomposition, values and gradients") {
    struct Size {
        std::int64_t rows, width, units;
    };
    for (const KernelStyle style : kernel_styles())
        for (const DType dtype : floats())
            for (const Size& size : {Size{1, 1, 1}, Size{3, 4, 5}, Size{2, 7, 16}, Size{33, 3, 37}, Size{0, 3, 4}}) {
                if (small_cases() && size.units > 5) continue;
                const ops::KernelStyleScope scope(style);
                CAPTURE(size.rows);
                CAPTURE(size.units);
                CAPTURE(static_cast<int>(style));
                const auto run = [&] {
                    const Tensors in = inputs(size.rows, size.width, size.units, dtype);
                    const Tensors out = sequence(in, 3);
                    std::vector<std::vector<double>> all{values(out[0]), values(out[1])};
                    sum(out[0] * random_tensor(out[0].shape(), 30, dtype) + square(out[1])).backward();
                    for (const Tensor& input : in) all.push_back(values(input.grad()));
                    return all;
                };
                const auto got = run();
                const detail::DecompositionScope decomposed;
                const auto expected = run();
                for (std::size_t i = 0; i < got.size(); ++i)
                    CHECK(difference(got[i], expected[i], tolerance(dtype, 60, 4)) == "");
            }
}

TEST_CASE("lstm_cell: the function contract with both results") {
    const Contract contract{.name = "lstm_cell",
                            .inputs =
                                [] {
                                    Tensors all;
                                    for (const Tensor& input : inputs(3, 4, 5, DType::f32))
                                        all.push_back(input.detach());
                                    return all;
                                }(),
                            .arbitrary = std::vector<bool>(7, true),
                            .call = [](const Tensors& in) { return sequence(in, 2); }};
    std::string all;
    for (const std::string& violation : violations(contract)) all += violation + "\n";
    CHECK(all == "");
}

TEST_CASE("lstm_cell: without biases, f16 and bf16, and errors") {
    const Tensors in = inputs(2, 3, 4, DType::f32);
    const Tensor none = zeros({16});
    const LstmState plain = lstm_cell(in[0], {in[1], in[2]}, in[3], in[4]),
                    zero = lstm_cell(in[0], {in[1], in[2]}, in[3], in[4], none, none);
    CHECK(difference(plain.hidden, values(zero.hidden), {1e-6, 1e-6}) == "");
    Tensors reduced_inputs;
    for (const Tensor& input : in) reduced_inputs.push_back(input.detach().to(DType::bf16));
    const LstmState reduced_state =
        lstm_cell(reduced_inputs[0], {reduced_inputs[1], reduced_inputs[2]}, reduced_inputs[3], reduced_inputs[4]);
    CHECK(reduced_state.hidden.dtype() == DType::bf16);
    CHECK(difference(reduced_state.hidden, values(plain.hidden), {0.05, 0.05}) == "");
    CHECK_THROWS_AS(lstm_cell(in[0], {in[1], in[1]}, in[4], in[4]), ShapeError);
    CHECK_THROWS_AS(lstm_cell(in[0], {in[1], in[2].to(DType::bf16)}, in[3], in[4]), TypeError);
    CHECK_THROWS_AS(lstm_cell(in[0], {in[1], Tensor()}, in[3], in[4]), ValueError);
}
