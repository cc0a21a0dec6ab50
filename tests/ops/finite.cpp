// The guard against losses that are no numbers.
#include <vector>

#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/ops/multi_tensor_fixture.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("finite: the guard counts steps and keeps the first bad one") {
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

TEST_CASE("finite: a bad loss is found wherever it stands, and the largest numbers are good") {
    for (const double bad : {static_cast<double>(INFINITY), static_cast<double>(-INFINITY), static_cast<double>(NAN)})
        for (const std::size_t at :
             {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{99}}) {
            std::vector<double> losses(100, 3.4e38);
            const ops::View guard = guard_view(device());
            ops::check_finite(tensor(losses, {100}).view(), guard);
            CHECK(values(Tensor(guard)) == std::vector<double>{0, 1});
            losses[at] = bad;
            ops::check_finite(tensor(losses, {100}).view(), guard);
            CHECK(values(Tensor(guard)) == std::vector<double>{2, 2});
        }
}

TEST_CASE("finite: steps of the given tensors count, only while the guard is not set") {
    for (const DType dtype : floats()) {
        const ops::View steps = tensor({7, 0, 41, 3}, {4}, dtype).view();
        const ops::View some = Tensor::from<std::int64_t>({2, 0}, {2}, device()).view();
        ops::count_step(steps, some, guard_view(device()));
        CHECK(values(Tensor(steps)) == std::vector<double>{8, 0, 42, 3});
        ops::count_step(steps, some, guard_view(device(), 4, 9));
        CHECK(values(Tensor(steps)) == std::vector<double>{8, 0, 42, 3});
    }
    // More tensors than a work-group has work-items.
    const Tensor many = full({1000}, 2, {.device = device()}), numbers = arange(1000, {DType::i64, device()});
    ops::count_step(many.view(), numbers.view(), guard_view(device()));
    CHECK(values(many) == std::vector<double>(1000, 3));
}

TEST_CASE("finite: what does not fit is refused") {
    const ops::View losses = tensor({1}, {1}).view(), guard = guard_view(device());
    CHECK_THROWS_AS(ops::check_finite(guard, guard), TypeError);
    CHECK_THROWS_AS(ops::check_finite(losses, losses), ShapeError);
    CHECK_THROWS_AS(ops::check_finite(losses, progress_view(device(), DType::f32, 1, 1)), TypeError);
    CHECK_THROWS_AS(ops::check_finite(losses, guard_view(fresh_device())), DeviceError);
    CHECK_THROWS_AS(ops::count_step(losses, losses, guard), TypeError);
    CHECK_THROWS_AS(ops::count_step(guard, Tensor::from<std::int64_t>({0}, {1}, device()).view(), guard), TypeError);
    CHECK_THROWS_AS(ops::count_step(losses, Tensor::from<std::int64_t>({0}, {1}, device()).view(), losses), ShapeError);
}
