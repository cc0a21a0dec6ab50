// no-oclgrind: its kernels are those of the tests of softmax, cross_entropy and pool2d
// softmax, cross_entropy and pooling: kernels and gradients compared with their decompositions.
#include <functional>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Compares values and gradients of `call` by kernels of both styles with those of its decomposition.
void check(const std::string& name, const Shape& shape, const std::function<Tensor(const Tensor&)>& call) {
    for (const DType dtype : floats()) {
        if (small_cases() && dtype == DType::f64 && name != "softmax") continue;
        Tensor x = random_tensor(shape, 1, dtype, -3, 3).set_requires_grad();
        const auto run = [&] {
            x.zero_grad();
            const Tensor y = call(x);
            y.backward(random_tensor(y.shape(), 2, dtype));
            return std::pair{values(y), values(x.grad())};
        };
        const auto expected = [&] {
            const detail::DecompositionScope decomposed;
            return run();
        }();
        for (const KernelStyle style : kernel_styles()) {
            const ops::KernelStyleScope scope(style);
            CAPTURE(name);
            CAPTURE(name_of(dtype));
            CAPTURE(static_cast<int>(style));
            const auto [y, dx] = run();
            const Tolerance allowed = tolerance(dtype, 30, 8);
            CHECK(difference(y, expected.first, allowed) == "");
            CHECK(difference(dx, expected.second, allowed) == "");
        }
    }
}

}  // namespace

TEST_CASE("decompositions: softmax and log_softmax") {
    for (const Shape& shape : {Shape{1}, Shape{7, 33}, Shape{3, 5, 18}})
        for (int axis = 0; axis < shape.rank(); ++axis) {
            check("softmax", shape, [&](const Tensor& x) { return softmax(x, axis); });
            check("log_softmax", shape, [&](const Tensor& x) { return log_softmax(x, axis); });
        }
}

TEST_CASE("decompositions: cross_entropy, with ignored labels and smoothing") {
    std::vector<std::int32_t> row_values;
    for (std::int32_t i = 0; i < 37; ++i) row_values.push_back(i * 7 % 19);
    const Tensor labels = Tensor::from<std::int32_t>(row_values, {37});
    for (const Reduction reduction : {Reduction::none, Reduction::sum, Reduction::mean})
        for (const double smoothing : {0.0, 0.3})
            check("cross_entropy", {37, 19}, [&](const Tensor& x) {
                return cross_entropy(x, labels,
                                     {.reduction = reduction, .label_smoothing = smoothing, .ignore_index = 5});
            });
}

TEST_CASE("decompositions: pooling") {
    for (const Pool2dParameters& options :
         {Pool2dParameters{.kernel_size = 2}, Pool2dParameters{.kernel_size = {3, 2}, .stride = {1, 2}},
          Pool2dParameters{.kernel_size = 3, .stride = 2, .padding = 1},
          Pool2dParameters{.kernel_size = 3, .padding = 1, .count_include_pad = false},
          Pool2dParameters{.kernel_size = {9, 37}, .stride = 1}}) {
        check("max_pool2d", {2, 3, 9, 37}, [&](const Tensor& x) { return max_pool2d(x, options); });
        check("avg_pool2d", {2, 3, 9, 37}, [&](const Tensor& x) { return avg_pool2d(x, options); });
    }
}
