// Gradient clipping by the global norm, compared with plain C++.
#include <cmath>

#include <declivity/ops/clip.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/ops/optim/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

double norm_on_host(const TensorLists& lists) {
    double sum = 0;
    for (const auto& tensor_values : lists.host[0])
        for (const double value : tensor_values) sum += value * value;
    return std::sqrt(sum);
}

}  // namespace

TEST_CASE("clip: a gradient (3, 4) of norm 5 is scaled to norm 1") {
    const Tensor gradient = tensor({3, 4}, {2});
    const std::vector<ops::View> list{gradient.view()};
    ops::MultiTensor tensors(1);
    tensors.set({list});
    CHECK(values(Tensor(ops::clip_norm(tensors, 1)))[0] == doctest::Approx(5));
    CHECK(difference(gradient, {0.6, 0.8}, {1e-6}) == "");
}

TEST_CASE("clip: scales to the maximum norm if the norm is larger, and returns the norm") {
    for (const Device& device : optimizer_devices())
        for (const DType dtype : floats()) {
            TensorLists lists(device, dtype, 1);
            lists.set(0, 1, -2, 3);
            ops::MultiTensor tensors(1);
            tensors.set(lists.views);
            const double norm = norm_on_host(lists);
            const double unit = dtype == DType::f32 ? 1e-6 : 1e-14;
            // Larger than the norm: nothing changes, not even by rounding.
            CHECK(values(Tensor(ops::clip_norm(tensors, 1.5 * norm)))[0] == doctest::Approx(norm).epsilon(unit));
            CHECK(lists.check(0, {}) == "");
            CHECK(values(Tensor(ops::clip_norm(tensors, 0.25 * norm)))[0] == doctest::Approx(norm).epsilon(unit));
            const double factor = 0.25 * norm / (norm + 1e-6);
            for (auto& tensor_values : lists.host[0])
                for (double& value : tensor_values) value *= factor;
            CHECK(lists.check(0, {.absolute = 0, .relative = 4 * unit}) == "");
            // Repeated from there.
            CHECK(values(Tensor(ops::clip_norm(tensors, norm)))[0] == doctest::Approx(factor * norm).epsilon(4 * unit));
        }
}

TEST_CASE("clip: zeros remain zeros, and NaN is preserved") {
    TensorLists lists(device(), DType::f32, 1);
    ops::MultiTensor tensors(1);
    lists.set(0, 0, 0, 0);
    tensors.set(lists.views);
    CHECK(values(Tensor(ops::clip_norm(tensors, 1)))[0] == 0);
    CHECK(lists.check(0, {}) == "");
    ops::fill(ops::sliced(lists.views[0][1], 0, 3, 1), NAN);
    CHECK(std::isnan(values(Tensor(ops::clip_norm(tensors, 1)))[0]));
    CHECK(std::isnan(values(Tensor(lists.views[0][1]))[3]));
    CHECK_THROWS_AS(ops::clip_norm(tensors, 0), ValueError);
    CHECK_THROWS_AS(ops::clip_norm(tensors, NAN), ValueError);
}

TEST_CASE("clip: tensors without elements have the norm 0") {
    ops::MultiTensor tensors(1);
    tensors.set({{ops::View::make(device(), DType::f32, {0})}});
    CHECK(values(Tensor(ops::clip_norm(tensors, 1)))[0] == 0);
}
