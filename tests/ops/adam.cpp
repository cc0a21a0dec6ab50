// Steps of Adam and AdamW against the formulas in double.
#include <cmath>

#include <declivity/ops/adam.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/ops/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using namespace declivity::test;
using ops::AdamParameters;

namespace {

void step_on_host(TensorLists& lists, const AdamParameters& with, double rate, int t) {
    for (std::size_t i = 0; i < lists.host[0].size(); ++i)
        for (std::size_t k = 0; k < lists.host[0][i].size(); ++k) {
            double &p = lists.host[0][i][k], &m = lists.host[2][i][k], &v = lists.host[3][i][k];
            double g = lists.host[1][i][k];
            if (with.decoupled) p -= rate * with.weight_decay * p;
            else g += with.weight_decay * p;
            m = with.beta1 * m + (1 - with.beta1) * g;
            v = with.beta2 * v + (1 - with.beta2) * g * g;
            p -= rate * m / (1 - std::pow(with.beta1, t)) /
                 (std::sqrt(v / (1 - std::pow(with.beta2, t))) + with.epsilon);
        }
}

}  // namespace

TEST_CASE("adam: with and without weight decay, coupled and decoupled") {
    for (const Device& device : pooled_and_exact())
        for (const DType dtype : floats())
            for (const AdamParameters& with : {AdamParameters{}, AdamParameters{.weight_decay = 0.1},
                                               AdamParameters{.weight_decay = 0.1, .decoupled = true},
                                               AdamParameters{.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3},
                                               AdamParameters{.beta1 = 0, .beta2 = 0}}) {
                CAPTURE(name_of(dtype));
                CAPTURE(with.beta1);
                CAPTURE(with.weight_decay);
                CAPTURE(with.decoupled);
                TensorLists lists(device, dtype, 4);
                lists.set(0, 1, -2, 2);
                lists.set(2, 0, 0, 0);
                lists.set(3, 0, 0, 0);
                const double rate = 0.03;
                const ops::View progress = progress_view(device, dtype, rate, 0), guard = guard_view(device);
                ops::MultiTensor tensors(4);
                for (int t = 1; t <= (small_cases() ? 2 : 4); ++t) {
                    lists.set(1, 10 + static_cast<std::uint64_t>(t), 0.01, 1);
                    tensors.set(lists.views);
                    ops::count_step(progress, guard);
                    ops::adam_step(tensors, progress, guard, with);
                    step_on_host(lists, with, rate, t);
                    for (std::size_t role = 0; role < 4; ++role)
                        CHECK(lists.check(role, tolerance(dtype, 20, 1)) == "");
                }
            }
}

TEST_CASE("adam: the corrections stay exact in f32, in the first steps and after many") {
    // 1 - 0.999^t computed in f32 itself would be off by 1e-4 at t = 1.
    for (const double before : {0.0, 1.0, 99.0, 100000.0}) {
        CAPTURE(before);
        TensorLists lists(device(), DType::f32, 4);
        lists.set(0, 1, 0, 0);
        lists.set(1, 2, 0.5, 1);
        lists.set(2, 3, -1, 1);
        lists.set(3, 4, 0.5, 1);
        const ops::View progress = progress_view(device(), DType::f32, 1, before), guard = guard_view(device());
        ops::MultiTensor tensors(4);
        tensors.set(lists.views);
        ops::count_step(progress, guard);
        ops::adam_step(tensors, progress, guard, {});
        step_on_host(lists, {}, 1, static_cast<int>(before) + 1);
        CHECK(lists.check(0, {.absolute = 1e-6, .relative = 3e-6}) == "");
    }
}

TEST_CASE("adam: writes nothing while the guard is set") {
    TensorLists lists(device(), DType::f32, 4);
    ops::MultiTensor tensors(4);
    tensors.set(lists.views);
    ops::adam_step(tensors, progress_view(device(), DType::f32, 0.5, 3), guard_view(device(), 1, 1), {});
    for (std::size_t role = 0; role < 4; ++role) CHECK(lists.check(role, {}) == "");
}

TEST_CASE("adam: parameters out of range are refused") {
    const TensorLists lists(device(), DType::f32, 4);
    ops::MultiTensor tensors(4);
    tensors.set(lists.views);
    const ops::View progress = progress_view(device(), DType::f32, 0.5, 1), guard = guard_view(device());
    CHECK_THROWS_WITH_AS(ops::adam_step(tensors, progress, guard, {.beta1 = 1}),
                         "adam_step: wants beta1 in [0, 1), got 1", ValueError);
    CHECK_THROWS_AS(ops::adam_step(tensors, progress, guard, {.beta2 = -0.1}), ValueError);
    CHECK_THROWS_AS(ops::adam_step(tensors, progress, guard, {.beta2 = NAN}), ValueError);
    ops::MultiTensor few(2);
    few.set({lists.views[0], lists.views[1]});
    CHECK_THROWS_AS(ops::adam_step(few, progress, guard, {}), ValueError);
}
