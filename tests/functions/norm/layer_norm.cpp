// layer_norm and rms_norm: sizes, both kernel styles, compared with plain C++ and with their decompositions.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

struct RowSize {
    std::int64_t rows, n;
};

std::vector<RowSize> row_sizes() {
    if (small_cases()) return {{3, 5}, {70, 3}, {2, 33}};
    return {{1, 1}, {3, 5}, {7, 16}, {2, 33}, {70, 3}, {300, 17}, {5, 1000}, {1000, 64}, {0, 4}};
}

Tensor call(bool rms, const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const Shape last{x.size(-1)};
    return rms ? rms_norm(x, last, weight, 1e-3) : layer_norm(x, last, weight, bias, 1e-3);
}

}  // namespace

TEST_CASE("layer_norm, rms_norm: rows of two elements") {
    // Mean 2 and variance 1, mean 5 and variance 0; eps is 1e-5.
    const Tensor x = tensor({1, 3, 5, 5}, {2, 2});
    CHECK(difference(layer_norm(x, {2}), {-1, 1, 0, 0}, {1e-5}) == "");
    const Tensor weight = tensor({10, 100}, {2}), bias = tensor({1, 2}, {2});
    CHECK(difference(layer_norm(x, {2}, weight, bias), {-9, 102, 1, 2}, {1e-3}) == "");
    // The mean of the squares of both rows is 25.
    CHECK(difference(rms_norm(tensor({1, 7, 5, 5}, {2, 2}), {2}), {0.2, 1.4, 1, 1}, {1e-5}) == "");
}

TEST_CASE("layer_norm, rms_norm: values and gradients match the definition and the decomposition") {
    for (const KernelStyle style : kernel_styles())
        for (const DType dtype : floats())
            for (const RowSize& size : row_sizes())
                for (const bool rms : {false, true})
                    for (const bool affine : {false, true}) {
                        const ops::KernelStyleScope scope(style);
                        CAPTURE(size.rows);
                        CAPTURE(size.n);
                        CAPTURE(rms);
                        CAPTURE(affine);
                        CAPTURE(static_cast<int>(style));
                        // Far from 0, where a variance by squares alone would lose precision.
                        const Tensor x = random_tensor({size.rows, size.n}, 1, dtype, 3, 5).set_requires_grad();
                        Tensor weight, bias;
                        if (affine) weight = random_tensor({size.n}, 2, dtype).set_requires_grad();
                        if (affine && !rms) bias = random_tensor({size.n}, 3, dtype).set_requires_grad();
                        const Tensor g = random_tensor({size.rows, size.n}, 4, dtype);
                        const Tensor y = call(rms, x, weight, bias);
                        const Values in = values(x), w = affine ? values(weight) : Values{},
                                     b = affine && !rms ? values(bias) : Values{};
                        Values expected;
                        const auto n = static_cast<std::size_t>(size.n);
                        for (std::size_t first = 0; first < in.size(); first += n) {
                            double mean = 0, squares = 0;
                            for (std::size_t i = 0; i < n && !rms; ++i) mean += in[first + i] / static_cast<double>(n);
                            for (std::size_t i = 0; i < n; ++i)
                                squares += std::pow(in[first + i] - mean, 2) / static_cast<double>(n);
                            for (std::size_t i = 0; i < n; ++i)
                                expected.push_back((in[first + i] - mean) / std::sqrt(squares + 1e-3) *
                                                       (affine ? w[i] : 1) +
                                                   (b.empty() ? 0 : b[i]));
                        }
                        const double terms = 20 + static_cast<double>(size.n) / 10;
                        CHECK(difference(y, expected, tolerance(dtype, terms, 4)) == "");
                        y.backward(g);
                        const auto gradient = [](const Tensor& tensor) {
                            return tensor.defined() ? values(tensor.grad()) : Values{};
                        };
                        const Values dx = gradient(x), dw = gradient(weight), db = gradient(bias);
                        for (Tensor tensor : {x, weight, bias})
                            if (tensor.defined()) tensor.zero_grad();
                        const detail::DecompositionScope decomposed;
                        const Tensor again = call(rms, x, weight, bias);
                        CHECK(difference(again, expected, tolerance(dtype, terms, 4)) == "");
                        again.backward(g);
                        const auto allowed = tolerance(dtype, 40 + static_cast<double>(size.rows) / 4, 8);
                        CHECK(difference(x.grad(), dx, allowed) == "");
                        if (weight.defined()) CHECK(difference(weight.grad(), dw, allowed) == "");
                        if (bias.defined()) CHECK(difference(bias.grad(), db, allowed) == "");
                    }
}

TEST_CASE("layer_norm: gradients of some inputs only, f16 and bf16, and errors") {
    const Tensor x = random_tensor({4, 6}, 1), weight = random_tensor({6}, 2).set_requires_grad();
    sum(square(layer_norm(x, {6}, weight))).backward();
    CHECK(weight.grad().defined());
    const Tensor differentiable = random_tensor({4, 6}, 1).set_requires_grad();
    sum(square(layer_norm(differentiable, {6}, weight.detach()))).backward();
    CHECK(differentiable.grad().defined());
    for (const DType half : {DType::f16, DType::bf16}) {
        const Tensor y = layer_norm(x.to(half), {6}, weight.detach().to(half));
        CHECK(y.dtype() == half);
        CHECK(difference(y, values(layer_norm(x.to(half).to(DType::f32), {6}, weight.detach().to(half).to(DType::f32))),
                         {.absolute = 0.02, .relative = 0.01}) == "");
    }
    CHECK_THROWS_WITH_AS(layer_norm(x, {4, 5}),
                         "layer_norm: expected x whose last axes are the normalised shape [4, 5], "
                         "got x of shape [4, 6]",
                         ShapeError);
    CHECK_THROWS_AS(layer_norm(x, {6}, random_tensor({5}, 1)), ShapeError);
    CHECK_THROWS_AS(layer_norm(x.to(DType::i32), {6}), TypeError);
    CHECK_THROWS_AS(rms_norm(x, {6}, {}, -1), ValueError);
    CHECK_THROWS_AS(rms_norm(x, {}), ShapeError);
    CHECK_THROWS_AS(rms_norm(Tensor(), {6}), ValueError);
}

TEST_CASE("layer_norm: with create_graph, each path counts once") {
    const Tensor x = random_tensor({3, 5}, 1).set_requires_grad(), w = random_tensor({5}, 2).set_requires_grad();
    const auto agree = [&](const std::function<Tensor()>& call, const std::vector<Tensor>& inputs) {
        const auto plain = grad({sum(square(call()))}, inputs),
                   captured = grad({sum(square(call()))}, inputs, {.create_graph = true});
        for (std::size_t i = 0; i < inputs.size(); ++i)
            CHECK(difference(captured[i], values(plain[i]), {.absolute = 1e-4, .relative = 1e-4}) == "");
    };
    agree([&] { return layer_norm(layer_norm(x, {5}, w), {5}, w); }, {x, w});
    agree([&] { return layer_norm(x, {5}, w, w); }, {x, w});
    agree([&] { return rms_norm(x * w, {5}, w); }, {x, w});
    const Tensor weight = random_tensor({20, 5}, 3).set_requires_grad();
    agree(
        [&] {
            const Tensor h = tanh(slice(x, 1, 0, 5));
            return lstm_cell(x, {h, tanh(h)}, weight, weight).hidden;
        },
        {x, weight});
    int calls = 0;
    const Tensor h = x * 1.0;
    Tensor(h).register_hook([&](const Tensor& g) {
        ++calls;
        return g * 2.0;
    });
    const Tensor y = rms_norm(h, {5}, w);
    const Tensor captured = grad({sum(square(y))}, {x}, {.retain_graph = true, .create_graph = true})[0];
    CHECK(calls == 1);
    CHECK(difference(captured, values(grad({sum(square(y))}, {x})[0]), {.absolute = 1e-4, .relative = 1e-4}) == "");
}
