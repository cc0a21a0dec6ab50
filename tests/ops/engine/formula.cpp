// Formulas over lists of tensors compared with plain C++: the basis of fused optimizer kernels.
#include <cmath>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/ops/optim/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("formula: several roles are written, each from the previous values") {
    for (const Device& device : optimizer_devices())
        for (const DType dtype : floats()) {
            CAPTURE(name_of(dtype));
            TensorLists lists(device, dtype, 4);
            for (std::size_t role = 0; role < 4; ++role) lists.set(role, 7 + role, 0.25, 2);
            ops::MultiTensor tensors(4);
            tensors.set(lists.views);
            const ops::FormulaTrace trace("test", device);
            const auto role = [&](std::size_t number) { return Tensor(trace.role(number, dtype)); };
            const Tensor a = role(0), b = role(1), c = role(2), d = role(3), x = Tensor(trace.number(0, dtype));
            const Tensor mean = 0.75 * c + 0.25 * b, scale = exp(x) * 0.5;
            const Tensor squares = where(b > 1, d + square(b), d);
            const ops::Formula formula(
                trace, {{0, (a - scale * mean / sqrt(squares)).value()}, {2, mean.value()}, {3, squares.value()}});
            formula.launch(tensors, progress_view(device, dtype, 0.3, 0), guard_view(device));
            for (std::size_t i = 0; i < lists.host[0].size(); ++i)
                for (std::size_t k = 0; k < lists.host[0][i].size(); ++k) {
                    double &p = lists.host[0][i][k], &m = lists.host[2][i][k], &v = lists.host[3][i][k];
                    const double g = lists.host[1][i][k];
                    m = 0.75 * m + 0.25 * g;
                    v = g > 1 ? v + g * g : v;
                    p -= std::exp(0.3) * 0.5 * m / std::sqrt(v);
                }
            for (std::size_t number = 0; number < 4; ++number)
                CHECK(lists.check(number, tolerance(dtype, 20, 2)) == "");
        }
}

TEST_CASE("formula: roles are swapped, and a role is filled with a number") {
    TensorLists lists(device(), DType::f32, 3);
    for (std::size_t role = 0; role < 3; ++role) lists.set(role, 3 + role, -1, 1);
    ops::MultiTensor tensors(3);
    tensors.set(lists.views);
    const ops::FormulaTrace trace("test", device());
    const Tensor a(trace.role(0, DType::f32)), b(trace.role(1, DType::f32)), c(trace.role(2, DType::f32));
    ops::Formula(trace, {{0, b.value()}, {1, a.value()}, {2, (0 * c + Tensor(trace.number(1, DType::f32))).value()}})
        .launch(tensors, progress_view(device(), DType::f32, 0, 7), guard_view(device()));
    std::swap(lists.host[0], lists.host[1]);
    for (auto& list : lists.host[2]) std::fill(list.begin(), list.end(), 7);
    for (std::size_t role = 0; role < 3; ++role) CHECK(lists.check(role, {}) == "");
}

TEST_CASE("formula: roles of several types") {
    for (const DType reduced : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(reduced));
        const std::int64_t n = 4099;
        const Tensor reduced_tensor = random_tensor({n}, 1).to(reduced), f32_tensor = random_tensor({n}, 2);
        const auto before = values(reduced_tensor), other = values(f32_tensor);
        ops::MultiTensor tensors(2);
        tensors.set({{reduced_tensor.view()}, {f32_tensor.view()}});
        const ops::FormulaTrace trace("test", reduced_tensor.device());
        const Tensor a = Tensor(trace.role(0, reduced)).to(DType::f32), b(trace.role(1, DType::f32));
        const Tensor sum = a + b;
        ops::Formula(trace, {{1, sum.value()}, {0, sum.to(reduced).value()}})
            .launch(tensors, progress_view(reduced_tensor.device(), DType::f32, 0, 0),
                    guard_view(reduced_tensor.device()));
        std::vector<double> sums, rounded;
        for (std::size_t i = 0; i < before.size(); ++i) {
            const float exact = static_cast<float>(before[i]) + static_cast<float>(other[i]);
            sums.push_back(exact);
            rounded.push_back(reduced == DType::f16 ? static_cast<double>(static_cast<float>(float16(exact)))
                                                    : static_cast<double>(static_cast<float>(bfloat16(exact))));
        }
        CHECK(values(f32_tensor) == sums);
        CHECK(values(reduced_tensor) == rounded);
    }
}

TEST_CASE("formula: writes nothing while the guard is set") {
    TensorLists lists(device(), DType::f32, 2);
    ops::MultiTensor tensors(2);
    tensors.set(lists.views);
    descent_step(tensors, progress_view(device(), DType::f32, 0.5, 3), guard_view(device(), 1, 1));
    for (std::size_t role = 0; role < 2; ++role) CHECK(lists.check(role, {}) == "");
    descent_step(tensors, progress_view(device(), DType::f32, 0.5, 3), guard_view(device()));
    CHECK(lists.check(0, {}) != "");
}

TEST_CASE("formula: empty tensors are refused with a message") {
    const ops::FormulaTrace trace("Mine", device());
    const Tensor a(trace.role(0, DType::f32)), other = ones({2}).to(device());
    const auto formula = [&](const Tensor& x) { (void)ops::Formula(trace, {{0, x.value()}}); };
    CHECK_THROWS_WITH_AS((void)a.to_vector<float>(),
                         doctest::Contains("Mine: expected a formula of elementwise functions"), ValueError);
    CHECK_THROWS_AS(formula(a + sum(a)), ValueError);
    CHECK_THROWS_AS(formula(slice(a, 0, 0, 1) + a), ValueError);
    CHECK_THROWS_AS((void)Tensor(a * 2.0).add_(1.0), ValueError);
    CHECK_THROWS_WITH_AS(formula(a + other), doctest::Contains("got a tensor from outside, of shape [2], in it"),
                         ValueError);
    CHECK_THROWS_WITH_AS(formula(a + uniform({2}, 0, 1, {.device = device()})),
                         doctest::Contains("got random numbers in it"), ValueError);
    Tensor long_chain = a;
    for (int i = 0; i < 120; ++i) long_chain = long_chain * 1.5;
    CHECK_THROWS_WITH_AS(formula(long_chain), doctest::Contains("at most 200 functions and 96 numbers"), ValueError);
}
