// Pooling and its gradients compared with plain loops in double.
#include <declivity/ops/pool2d.hpp>

#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include <reference/pool2d_cases.hpp>
#include <tests/support/values.hpp>
#include "ops/support/work_split.hpp"
#include "tests/support/gradient_check.hpp"

using namespace declivity;

TEST_CASE("pool2d: maxima and means of a 4 x 4 image by windows of 2 x 2, and their gradients") {
    using List = std::vector<double>;
    const Tensor x = test::tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {1, 1, 4, 4}),
                 g = test::tensor({4, 8, 12, 16}, {1, 1, 2, 2});
    const auto largest = ops::max_pool2d(x.view(), {});
    CHECK(test::values(Tensor(largest.indices)) == List{5, 7, 13, 15});
    CHECK(test::values(Tensor(largest.out)) == List{6, 8, 14, 16});
    CHECK(test::values(Tensor(ops::max_pool2d_backward(g.view(), largest.indices.view(), x.shape(), {}))) ==
          List{0, 0, 0, 0, 0, 4, 0, 8, 0, 0, 0, 0, 0, 12, 0, 16});
    CHECK(test::values(Tensor(ops::avg_pool2d(x.view(), {}))) == List{3.5, 5.5, 11.5, 13.5});
    CHECK(test::values(Tensor(ops::avg_pool2d_backward(g.view(), x.shape(), {}))) ==
          List{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
}

TEST_CASE("pool2d: results and gradients match plain loops") {
    std::vector<DType> types = test::floats();
    types.insert(types.end(), {DType::f16, DType::bf16});
    for (const DType dtype : types)
        for (const test::Pool2dCase& test_case : test::pool2d_cases()) {
            if ((test_case.large || dtype == DType::bf16) && test::small_cases()) continue;
            CAPTURE(test_case.name());
            const Tensor x = test::random_tensor(test_case.x, 1, dtype),
                         g = test::random_tensor(test_case.out(), 2, dtype);
            const auto reference = test_case.reference(test::values(x), test::values(g));
            auto tolerance = test::tolerance(
                dtype, static_cast<double>(test_case.parameters.kernel_size[0] * test_case.parameters.kernel_size[1]));
            if (is_16bit_float(dtype)) tolerance.relative += dtype == DType::f16 ? 0x1p-11 : 0x1p-8;  // one rounding
            for (const KernelStyle style : test::kernel_styles()) {
                // simt kernels know types only by name, and each set of parameters takes time to compile.
                if (style == KernelStyle::simt && dtype != DType::f32 && test_case.parameters.padding[1] == 0) continue;
                const ops::KernelStyleScope scope(style);
                const auto largest = ops::max_pool2d(x.view(), test_case.parameters);
                CHECK(test::difference(Tensor(largest.out), reference.max, {}) == "");
                CHECK(test::difference(Tensor(ops::max_pool2d_backward(g.view(), largest.indices.view(), test_case.x,
                                                                       test_case.parameters)),
                                       reference.max_gradient, tolerance) == "");
                // If the argmax is not needed, a kernel that does not write it.
                CHECK(test::difference(Tensor(ops::max_pool2d(x.view(), test_case.parameters).out), reference.max,
                                       {}) == "");
                CHECK(test::difference(Tensor(ops::avg_pool2d(x.view(), test_case.parameters)), reference.average,
                                       tolerance) == "");
                CHECK(test::difference(Tensor(ops::avg_pool2d_backward(g.view(), test_case.x, test_case.parameters)),
                                       reference.average_gradient, tolerance) == "");
            }
        }
}

TEST_CASE("pool2d: the first of equal elements is selected, NaN before all others") {
    const Tensor x = test::tensor({3, 3, 1, 3, 0, NAN, 5, 2, 1}, {1, 1, 3, 3}).set_requires_grad();
    const Tensor out = max_pool2d(x, {.kernel_size = 2, .stride = 1});
    CHECK(test::difference(out, {3, NAN, 5, NAN}, {}) == "");
    out.backward(test::tensor({1, 2, 4, 8}, out.shape()));
    CHECK(test::values(x.grad()) == std::vector<double>{1, 0, 0, 0, 0, 10, 4, 0, 0});
}

TEST_CASE("pool2d: infinities, NaN and equal elements in vectorised windows") {
    const ops::Pool2dParameters padded{.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
        whole{.kernel_size = {7, 7}, .stride = {7, 7}};
    for (const DType dtype : test::floats())
        for (const ops::Pool2dParameters& parameters : {ops::Pool2dParameters{}, padded, whole}) {
            const test::Pool2dCase test_case{
                {1, 3, parameters.kernel_size[0] == 7 ? 7 : 6, parameters.kernel_size[0] == 7 ? 7 : 40}, parameters};
            std::vector<double> values(static_cast<std::size_t>(test_case.x.numel()));
            for (std::size_t i = 0; i < values.size(); ++i) {
                constexpr double kValues[] = {-INFINITY, 1, -INFINITY, 2, 2, NAN, INFINITY};
                const std::size_t plane = i / (values.size() / 3);  // few distinct values, only -inf, and all kinds
                values[i] = plane == 0   ? kValues[3 * i * i % 5]
                            : plane == 1 ? -INFINITY
                                         : kValues[(i * i + i / 11) % 7];
            }
            const Tensor x = test::tensor(values, test_case.x, dtype),
                         g = test::random_tensor(test_case.out(), 2, dtype);
            const auto reference = test_case.reference(test::values(x), test::values(g));
            for (const KernelStyle style : test::kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(test_case.name());
                const auto largest = ops::max_pool2d(x.view(), parameters);
                CHECK(test::difference(Tensor(largest.out), reference.max, {}) == "");
                CHECK(test::difference(Tensor(ops::max_pool2d(x.view(), parameters).out), reference.max, {}) == "");
                CHECK(test::difference(
                          Tensor(ops::max_pool2d_backward(g.view(), largest.indices.view(), test_case.x, parameters)),
                          reference.max_gradient, test::tolerance(dtype, 9)) == "");
            }
        }
}

TEST_CASE("pool2d: gradients of the differentiable functions") {
    if (test::widest() != DType::f64) return;
    const Tensor x = test::random_tensor({2, 3, 5, 6}, 3, DType::f64);
    CHECK(test::gradient_difference(
              [](const auto& in) {
                  return max_pool2d(in[0], {.kernel_size = {3, 2}, .stride = 2, .padding = 1});
              },
              {x}) == "");
    CHECK(test::gradient_difference(
              [](const auto& in) {
                  return avg_pool2d(in[0], {.kernel_size = 3, .stride = {1, 2}, .padding = 1});
              },
              {x}) == "");
    CHECK(test::gradient_difference(
              [](const auto& in) {
                  return avg_pool2d(in[0], {.kernel_size = 3, .padding = 1, .count_include_pad = false});
              },
              {x}) == "");
    CHECK(test::gradient_difference([](const auto& in) { return global_avg_pool2d(in[0]); }, {x}) == "");
    // A strided tensor.
    CHECK(test::gradient_difference(
              [](const auto& in) {
                  return max_pool2d(permute(in[0], {1, 0, 3, 2}));
              },
              {x}) == "");
}

TEST_CASE("pool2d: error messages") {
    const Tensor x = test::random_tensor({1, 2, 4, 4}, 1);
    CHECK_THROWS_WITH_AS(max_pool2d(reshape(x, {8, 4})), doctest::Contains("max_pool2d: expected x"), ShapeError);
    CHECK_THROWS_AS(max_pool2d(x, {.kernel_size = 5}), ShapeError);
    CHECK_THROWS_AS(avg_pool2d(x, {.kernel_size = 0}), ValueError);
    CHECK_THROWS_AS(avg_pool2d(x, {.kernel_size = 2, .stride = -1}), ValueError);
    CHECK_THROWS_AS(max_pool2d(x, {.kernel_size = 2, .padding = 2}), ValueError);
    CHECK_THROWS_AS(max_pool2d(x.to(DType::boolean)), TypeError);
    CHECK_THROWS_AS(global_avg_pool2d(reshape(x, {32})), ShapeError);
}
