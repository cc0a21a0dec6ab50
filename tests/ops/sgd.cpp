// Steps of gradient descent against the formulas in double.
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/ops/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/ops/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using namespace declivity::test;
using ops::SgdParameters;

namespace {

void step_on_host(TensorLists& lists, const SgdParameters& with, double rate, int t) {
    for (std::size_t i = 0; i < lists.host[0].size(); ++i)
        for (std::size_t k = 0; k < lists.host[0][i].size(); ++k) {
            double& p = lists.host[0][i][k];
            const double g = lists.host[1][i][k] + with.weight_decay * p;
            if (with.momentum == 0) {
                p -= rate * g;
                continue;
            }
            double& m = lists.host[2][i][k];
            m = t == 1 ? g : with.momentum * m + (1 - with.dampening) * g;
            p -= rate * (with.nesterov ? g + with.momentum * m : m);
        }
}

void check_steps(const Device& device, DType dtype, const SgdParameters& with) {
    const std::size_t roles = with.momentum == 0 ? 2 : 3;
    TensorLists lists(device, dtype, roles);
    lists.set(0, 1, -2, 2);
    if (roles == 3) lists.fill(2, NAN);  // the first step must not take anything from it
    const double rate = 0.25;
    const ops::View progress = progress_view(device, dtype, rate, 0), guard = guard_view(device);
    ops::MultiTensor tensors(roles);
    for (int t = 1; t <= 4; ++t) {
        lists.set(1, 10 + static_cast<std::uint64_t>(t), -1, 1);
        tensors.set(lists.views);
        ops::count_step(progress, guard);
        ops::sgd_step(tensors, progress, guard, with);
        step_on_host(lists, with, rate, t);
        for (std::size_t role = 0; role < roles; ++role) CHECK(lists.check(role, tolerance(dtype, 10, 2)) == "");
    }
}

}  // namespace

TEST_CASE("sgd: plain, with momentum, dampening, Nesterov and weight decay") {
    for (const Device& device : pooled_and_exact())
        for (const DType dtype : floats())
            for (const SgdParameters& with :
                 {SgdParameters{}, SgdParameters{.weight_decay = 0.1}, SgdParameters{.momentum = 0.9},
                  SgdParameters{.momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01},
                  SgdParameters{.momentum = 0.8, .weight_decay = 0.1, .nesterov = true}}) {
                CAPTURE(name_of(dtype));
                CAPTURE(with.momentum);
                CAPTURE(with.nesterov);
                check_steps(device, dtype, with);
            }
}

TEST_CASE("sgd: writes nothing while the guard is set") {
    const Device device = test::device();
    TensorLists lists(device, DType::f32, 3);
    const ops::View progress = progress_view(device, DType::f32, 0.5, 3), guard = guard_view(device, 2, 3);
    ops::MultiTensor tensors(3);
    tensors.set(lists.views);
    ops::sgd_step(tensors, progress, guard, {.momentum = 0.9});
    for (std::size_t role = 0; role < 3; ++role) CHECK(lists.check(role, {}) == "");
    ops::sgd_step(tensors, progress, guard_view(device), {.momentum = 0.9});
    CHECK(lists.check(0, {}) != "");
}

TEST_CASE("sgd: the rate is read when the step runs") {
    const Device device = test::device();
    TensorLists lists(device, DType::f32, 2);
    lists.set(1, 5, -1, 1);
    const ops::View progress = progress_view(device, DType::f32, 0.5, 1), guard = guard_view(device);
    ops::MultiTensor tensors(2);
    tensors.set(lists.views);
    for (const double rate : {0.5, 0.125}) {
        ops::fill(ops::sliced(progress, 0, 0, 1), rate);
        ops::sgd_step(tensors, progress, guard, {});
        step_on_host(lists, {}, rate, 1);
    }
    CHECK(lists.check(0, tolerance(DType::f32, 2)) == "");
}

TEST_CASE("sgd: what does not fit is refused") {
    const Device device = test::device();
    const TensorLists lists(device, DType::f32, 2);
    ops::MultiTensor tensors(2);
    const ops::View progress = progress_view(device, DType::f32, 0.5, 1), guard = guard_view(device);
    CHECK_THROWS_AS(ops::sgd_step(tensors, progress, guard, {}), ValueError);  // no tensors yet
    tensors.set(lists.views);
    CHECK_THROWS_AS(ops::sgd_step(tensors, ops::sliced(progress, 0, 0, 1), guard, {}), ShapeError);
    CHECK_THROWS_AS(ops::sgd_step(tensors, progress, ops::View::make(device, DType::i64, {2}), {}), TypeError);
    CHECK_THROWS_AS(ops::sgd_step(tensors, ops::View::make(device, DType::i32, {2}), guard, {}), TypeError);
    CHECK_THROWS_AS(ops::sgd_step(tensors, progress, guard_view(fresh_device()), {}), DeviceError);
    CHECK_THROWS_AS(ops::sgd_step(tensors, progress, guard, {.momentum = 0.9}),
                    ValueError);  // momentum wants a third role
}
