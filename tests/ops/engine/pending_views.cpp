// reshape, permute, slice and expand of pending values are pending too, and share their future memory.
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/launches.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/fusion.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::FusionScope;

namespace {

using Values = std::vector<double>;

/// All view functions combined.
Tensor layout(const Tensor& y) { return expand(reshape(slice(permute(y, {1, 0}), 1, 1, 5, 2), {4, 2, 1}), {4, 2, 3}); }

Values layout_of(const Values& y) {  // (6, 4)
    Values out;
    for (std::size_t c = 0; c < 4; ++c)
        for (const std::size_t r : {1, 3})
            for (int k = 0; k < 3; ++k) out.push_back(y[r * 4 + c]);
    return out;
}

}  // namespace

TEST_CASE("pending views: nothing is launched, and the elements are correct") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({6, 5}, 1), w = random_tensor({5, 4}, 2), b = random_tensor({6, 4}, 3);
    const Values product = values(matmul(x, w)), chain = values(tanh(b) * 2.0);
    for (const bool operation : {true, false}) {
        CAPTURE(operation);
        const Values& expected = operation ? product : chain;
        Tensor y, flat, turned, part;
        CHECK(launches([&] {
                  y = operation ? matmul(x, w) : tanh(b) * 2.0;
                  flat = reshape(y, {2, 12});
                  turned = transpose(y);
                  part = slice(reshape(flat, {24}), 0, 4, 12);
              }) == 0);
        CHECK_FALSE(part.value().computed());
        CHECK(part.shape() == Shape{8});
        CHECK(values(part) == Values(expected.begin() + 4, expected.begin() + 12));
        CHECK(y.value().computed());
        CHECK(launches([&] { materialize(flat), materialize(y); }) == 0);
        CHECK(values(flat) == expected);
        CHECK(values(reshape(turned, {24})) == values(turned));
        const Tensor recomputed = operation ? matmul(x, w) : tanh(b) * 2.0;
        // reshape to non-contiguous strides evaluates the value.
        CHECK(values(layout(recomputed)) == layout_of(expected));
        // Under further functions, and a reduction.
        const Tensor third = operation ? matmul(x, w) : tanh(b) * 2.0;
        Values plus = layout_of(expected);
        double total = 0;
        for (double& value : plus) total += value += 1;
        CHECK(difference(layout(third) + 1.0, plus, tolerance(DType::f32, 4)) == "");
        CHECK(difference(sum(layout(operation ? matmul(x, w) : tanh(b) * 2.0) + 1.0), {total},
                         tolerance(DType::f32, 80)) == "");
    }
}

TEST_CASE("pending views: base and view see each other's writes, and earlier results keep their elements") {
    const FusionScope fusion_on(true);
    const Tensor b = random_tensor({4, 3}, 1);
    const Values expected = values(tanh(b));
    for (const bool fill_view : {false, true}) {
        Tensor y = tanh(b), flat = reshape(y, {12});
        const Tensor doubled = flat * 2.0, base_tripled = y * 3.0;
        Tensor(fill_view ? flat : y).fill_(7);
        CHECK(values(y) == Values(12, 7));
        CHECK(values(flat) == Values(12, 7));
        Values twofold = expected, tripled = expected;
        for (double& value : twofold) value *= 2;
        for (double& value : tripled) value *= 3;
        CHECK(difference(doubled, twofold, tolerance(DType::f32, 4)) == "");
        CHECK(difference(base_tripled, tripled, tolerance(DType::f32, 4)) == "");
    }
    // A row view, written in place; the rest of the base is unchanged.
    const Tensor y = tanh(b);
    slice(y, 0, 1, 2).fill_(7);
    Values part = expected;
    for (std::size_t i = 3; i < 6; ++i) part[i] = 7;
    CHECK(values(y) == part);
    // The base is dropped before evaluation.
    Tensor remaining_view;
    {
        const Tensor temporary = tanh(b);
        remaining_view = transpose(temporary);
    }
    CHECK(values(transpose(remaining_view)) == expected);
    // With a destination, the view keeps the base alive.
    Tensor target = zeros({12});
    target.copy_(reshape(tanh(b), {12}));
    CHECK(values(target) == expected);
}

TEST_CASE("pending views: gradients, captured steps, earlier values") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({6, 5}, 1).set_requires_grad(), w = random_tensor({5, 4}, 2);
    const auto loss = [&](const Tensor& in) { return sum(square(layout(matmul(in, w)))); };
    const Tensor g = grad({loss(x)}, {x})[0];
    Values expected(30, 0);
    const Values y = values(matmul(x.detach(), w)), weights = values(w);
    for (const std::size_t r : {1, 3})
        for (std::size_t k = 0; k < 5; ++k)
            for (std::size_t c = 0; c < 4; ++c) expected[r * 5 + k] += 6 * y[r * 4 + c] * weights[k * 4 + c];
    CHECK(difference(g, expected, tolerance(DType::f32, 40)) == "");
    const Tensor before = tanh(w), older = reshape(before, {4, 5});  // from before the capture, still pending
    auto step = capture([&](const Tensor& in) { return matmul(reshape(tanh(in), {5, 4}), older) + 0.0; });
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Tensor in = random_tensor({4, 5}, seed + 7);
        const Values plain = values(matmul(reshape(tanh(in), {5, 4}), reshape(tanh(w), {4, 5})));
        CHECK(difference(step(in), plain, tolerance(DType::f32, 8)) == "");
    }
    CHECK(step.replayed() > 0);
}

TEST_CASE("pending views: wrong arguments are refused at the call") {
    const FusionScope fusion_on(true);
    const Tensor y = tanh(random_tensor({6, 4}, 1));
    CHECK_THROWS_AS(reshape(y, {5, 5}), ShapeError);
    CHECK_THROWS_AS(permute(y, {0, 0}), ShapeError);
    CHECK_THROWS_AS(expand(y, {3, 4}), ShapeError);
    CHECK_THROWS_AS(slice(y, 0, 0, 2, 0), ShapeError);
    CHECK_FALSE(y.value().computed());
}
