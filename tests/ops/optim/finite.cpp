// The guard against non-finite losses.
#include <vector>

#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/default_device.hpp>
#include <doctest/doctest.h>
#include <tests/ops/optim/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("finite: the guard counts steps and keeps the first non-finite one") {
    for (const DType dtype : floats()) {
        const ops::View guard = guard_view(device());
        const auto step = [&](const std::vector<double>& losses) {
            ops::check_finite(tensor(losses, {static_cast<std::int64_t>(losses.size())}, dtype).view(), guard);
            return values(Tensor(guard));
        };
        CHECK(step({1}) == std::vector<double>{0, 1});
        CHECK(step({0, -3, 1e30}) == std::vector<double>{0, 2});
        CHECK(step({1, 2, NAN, 4}) == std::vector<double>{3, 3});
        CHECK(step({1}) == std::vector<double>{3, 4});
        CHECK(step({INFINITY}) == std::vector<double>{3, 5});
    }
}

TEST_CASE("finite: a loss of weight 0 is not recorded, and its step is skipped until the next") {
    for (const DType dtype : floats()) {
        const ops::View guard = guard_view(device());
        const auto step = [&](double loss, double weight, bool skips) {
            ops::check_finite(tensor({loss}, {1}, dtype).view(), tensor({weight}, {1}).view(), guard, skips);
            return values(Tensor(guard));
        };
        CHECK(step(1, 3, true) == std::vector<double>{0, 1});
        CHECK(step(NAN, 0, true) == std::vector<double>{ops::kSkippedStep, 2});
        CHECK(step(1, 3, true) == std::vector<double>{0, 3});
        CHECK(step(NAN, 0, false) == std::vector<double>{0, 4});
        CHECK(step(2, 0, true) == std::vector<double>{ops::kSkippedStep, 5});
        ops::check_finite(tensor({1.0}, {1}, dtype).view(), guard);
        CHECK(values(Tensor(guard)) == std::vector<double>{0, 6});
        ops::skip_weightless(tensor({2.0}, {1}).view(), guard);
        CHECK(values(Tensor(guard)) == std::vector<double>{0, 6});
        ops::skip_weightless(tensor({0.0}, {1}).view(), guard);
        CHECK(values(Tensor(guard)) == std::vector<double>{ops::kSkippedStep, 6});
        ops::end_skip(guard);
        CHECK(step(NAN, 0.5, true) == std::vector<double>{7, 7});
        ops::skip_weightless(tensor({0.0}, {1}).view(), guard);
        ops::end_skip(guard);
        CHECK(step(NAN, 0, true) == std::vector<double>{7, 8});
        const ops::View other = guard_view(device());
        ops::check_finite(tensor({1.0}, {1}, dtype).view(), tensor({NAN}, {1}).view(), other, true);
        CHECK(values(Tensor(other)) == std::vector<double>{1, 1});
    }
}

TEST_CASE("finite: an infinite or NaN element is found at any position in tensors of any floating type") {
    std::vector<DType> types = floats();
    types.push_back(DType::f16);
    types.push_back(DType::bf16);
    for (const Device& device : optimizer_devices())
        for (const DType dtype : types)
            for (const double bad :
                 {static_cast<double>(INFINITY), static_cast<double>(-INFINITY), static_cast<double>(NAN)})
                for (const std::int64_t at : {0, 1, 4095, 4096, 9999}) {
                    const DefaultDevice here(device);
                    const ops::View guard = guard_view(device);
                    ops::MultiTensor tensors(1);
                    const Tensor first = full({7}, 60000, {dtype}), all_ones = full({10000}, -1, {dtype});
                    tensors.set({{first.view(), all_ones.view()}});
                    ops::check_finite(tensors, guard);
                    CHECK(values(Tensor(guard)) == std::vector<double>{0, 0});
                    ops::check_finite(tensor({1.0}, {1}).view(), guard);
                    slice(all_ones, 0, at, at + 1).fill_(bad);
                    ops::check_finite(tensors, guard);
                    CHECK(values(Tensor(guard)) == std::vector<double>{1, 1});
                    ops::check_finite(tensor({1.0}, {1}).view(), guard);
                    ops::check_finite(tensors, guard);
                    CHECK(values(Tensor(guard)) == std::vector<double>{1, 2});
                }
}

TEST_CASE("finite: tensors are saved, bit for bit, until a step was recorded") {
    const ops::View guard = guard_view(device());
    const Tensor bit_patterns = Tensor::from<std::int32_t>({1, -1, 0x7fc00001, 4}, {4});
    const Tensor copy = zeros({4}, {DType::i32});
    const auto as_i32 = [](const Tensor& tensor) {
        ops::View view = tensor.view();
        view.dtype = DType::f32;
        return view;
    };
    ops::MultiTensor tensors(2);
    tensors.set({{as_i32(bit_patterns)}, {as_i32(copy)}});
    ops::save_unless_noted(tensors, guard);
    CHECK(copy.to_vector<std::int32_t>() == bit_patterns.to_vector<std::int32_t>());
    slice(Tensor(guard), 0, 0, 1).fill_(ops::kSkippedStep);
    Tensor(bit_patterns).fill_(5);
    ops::save_unless_noted(tensors, guard);
    CHECK(copy.to_vector<std::int32_t>() == std::vector<std::int32_t>(4, 5));
    slice(Tensor(guard), 0, 0, 1).fill_(3);
    Tensor(bit_patterns).fill_(6);
    ops::save_unless_noted(tensors, guard);
    CHECK(copy.to_vector<std::int32_t>() == std::vector<std::int32_t>(4, 5));
}

TEST_CASE("finite: a non-finite loss is found at any position, and the largest finite numbers are accepted") {
    for (const Device& device : optimizer_devices())
        for (const double bad :
             {static_cast<double>(INFINITY), static_cast<double>(-INFINITY), static_cast<double>(NAN)})
            for (const std::size_t at :
                 {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{99}}) {
                const DefaultDevice here(device);
                std::vector<double> losses(100, 3.4e38);
                const ops::View guard = guard_view(device);
                ops::check_finite(tensor(losses, {100}).view(), guard);
                CHECK(values(Tensor(guard)) == std::vector<double>{0, 1});
                losses[at] = bad;
                ops::check_finite(tensor(losses, {100}).view(), guard);
                CHECK(values(Tensor(guard)) == std::vector<double>{2, 2});
            }
}

TEST_CASE("finite: steps of the given tensors count only while the guard is not set") {
    for (const Device& device : optimizer_devices()) {
        const DefaultDevice here(device);
        for (const DType dtype : floats()) {
            const ops::View steps = tensor({7, 0, 41, 3}, {4}, dtype).view();
            const ops::View some = Tensor::from<std::int64_t>({2, 0}, {2}).view();
            ops::count_step(steps, some, guard_view(device));
            CHECK(values(Tensor(steps)) == std::vector<double>{8, 0, 42, 3});
            ops::count_step(steps, some, guard_view(device, 4, 9));
            CHECK(values(Tensor(steps)) == std::vector<double>{8, 0, 42, 3});
        }
        // More tensors than a work-group has work-items.
        const Tensor counters = full({1000}, 2), integers = arange(1000, {DType::i64});
        ops::count_step(counters.view(), integers.view(), guard_view(device));
        CHECK(values(counters) == std::vector<double>(1000, 3));
    }
}

TEST_CASE("finite: error messages") {
    const ops::View losses = tensor({1}, {1}).view(), guard = guard_view(device());
    CHECK_THROWS_AS(ops::check_finite(guard, guard), TypeError);
    CHECK_THROWS_AS(ops::check_finite(losses, losses), ShapeError);
    CHECK_THROWS_AS(ops::check_finite(losses, progress_view(device(), DType::f32, 1, 1)), TypeError);
    CHECK_THROWS_AS(ops::check_finite(losses, guard_view(fresh_device())), DeviceError);
    CHECK_THROWS_AS(ops::count_step(losses, losses, guard), TypeError);
    CHECK_THROWS_AS(ops::count_step(guard, Tensor::from<std::int64_t>({0}, {1}, device()).view(), guard), TypeError);
    CHECK_THROWS_AS(ops::count_step(losses, Tensor::from<std::int64_t>({0}, {1}, device()).view(), losses), ShapeError);
}
