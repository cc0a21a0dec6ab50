// New tensors: constants, ranges, host data, conversions of type and device, random numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

std::vector<DType> all_types() {
    auto out = floats();
    std::ranges::copy_if(kDTypes, std::back_inserter(out), [](DType type) { return !is_floating(type); });
    return out;
}

/// Restores the random state of the device.
struct KeepRandom {
    RandomState before = random_state(device());
    ~KeepRandom() { set_random_state(device(), before); }
};

}  // namespace

TEST_CASE("full, zeros, ones: every type and rank") {
    for (const DType dtype : all_types())
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 0, 3}, Shape{1, 3, 1, 5, 1}}) {
            CAPTURE(name_of(dtype));
            CAPTURE(shape.str());
            const auto count = static_cast<std::size_t>(shape.numel());
            for (const Tensor& result :
                 {ones(shape, {dtype}), ones_like(zeros(shape, {dtype})), full(shape, 1, {dtype})}) {
                CHECK(result.dtype() == dtype);
                CHECK(result.shape() == shape);
                CHECK(values(result) == Values(count, 1));
            }
            CHECK(values(zeros(shape, {dtype})) == Values(count, 0));
            CHECK(values(zeros_like(ones(shape, {dtype}))) == Values(count, 0));
            if (dtype != DType::boolean) CHECK(values(full(shape, 99, {dtype})) == Values(count, 99));
        }
    CHECK(zeros({2}).dtype() == DType::f32);
    CHECK(zeros({2}).device() == default_device());
    CHECK_FALSE(zeros({2}).requires_grad());
    const Device other = fresh_device();
    CHECK(zeros({2}, {.device = other}).device() == other);
    CHECK(ones_like(zeros({2}, {.device = other})).device() == other);
    CHECK(full({2}, 0.1).to_vector<float>()[1] == 0.1F);
    CHECK(full({1}, -0x1p63, {DType::i64}).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
    CHECK(std::isnan(full({1}, NAN).item<float>()));
    CHECK(full({1}, -INFINITY).item<float>() == -INFINITY);
    // The shape of a view, not of its buffer.
    CHECK(zeros_like(transpose(ones({2, 3}))).shape() == Shape({3, 2}));
}

TEST_CASE("full: errors") {
    CHECK_THROWS_WITH_AS(full({2}, 0.5, {DType::i32}), "full: expected a whole number that fits into i32, got 0.5",
                         ValueError);
    CHECK_THROWS_WITH_AS(full({2}, -1, {DType::u8}), "full: expected a whole number that fits into u8, got -1",
                         ValueError);
    CHECK_THROWS_WITH_AS(full({2}, 128, {DType::i8}), "full: expected a whole number that fits into i8, got 128",
                         ValueError);
    CHECK_THROWS_AS(full({2}, NAN, {DType::i64}), ValueError);
    CHECK_THROWS_WITH_AS(zeros({2, -1}), "zeros: expected sizes of at least 0, got [2, -1]", ShapeError);
    CHECK_THROWS_AS(zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}), ShapeError);
    CHECK_THROWS_WITH_AS(zeros_like(Tensor()), "zeros_like: expected a tensor, got an undefined one", ValueError);
    CHECK_THROWS_WITH_AS(ones_like(Tensor()), "ones_like: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("default_device: the device of new tensors by default") {
    const Device before = default_device(), other = fresh_device();
    CHECK(before == device());
    set_default_device(other);
    CHECK(zeros({2}).device() == other);
    CHECK(Tensor::from<float>({1, 2}, {2}).device() == other);
    CHECK(arange(0, 3).device() == other);
    CHECK(uniform({2}).device() == other);
    CHECK(zeros({2}, {.device = before}).device() == before);
    set_default_device(before);
    CHECK(zeros({2}).device() == before);
}

TEST_CASE("eye: sizes and types") {
    CHECK(values(eye(2)) == Values{1, 0, 0, 1});
    CHECK(values(eye(2, 3, {widest()})) == Values{1, 0, 0, 0, 1, 0});
    CHECK(values(eye(3, 1, {DType::i64})) == Values{1, 0, 0});
    CHECK(eye(0).shape() == Shape{0, 0});
    CHECK(eye(2, 3, {DType::boolean}).dtype() == DType::boolean);
    CHECK_THROWS_WITH_AS(eye(-1), "eye: expected sizes of at least 0, got -1 and -1", ValueError);
    CHECK_THROWS_AS(eye(1, -2), ValueError);
}

TEST_CASE("arange: integral, fractional and negative steps") {
    CHECK(values(arange(0, 5)) == Values{0, 1, 2, 3, 4});
    CHECK(arange(0, 5).dtype() == DType::f32);
    CHECK(values(arange(2, 10, 3)) == Values{2, 5, 8});
    CHECK(values(arange(5, 0, -1)) == Values{5, 4, 3, 2, 1});
    CHECK(values(arange(5, 0, -2)) == Values{5, 3, 1});
    CHECK(values(arange(-1, 1, 0.25)) == Values{-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75});
    CHECK(values(arange(1, -1, -0.5)) == Values{1, 0.5, 0, -0.5});
    CHECK(values(arange(0, 1, 5)) == Values{0});
    CHECK(arange(3, 3).shape() == Shape({0}));
    CHECK(arange(3, 2.5, -1).shape() == Shape({1}));
    // The same number as in NumPy, however the tenths are rounded.
    CHECK(arange(0, 1, 0.1).size(0) == 10);
    CHECK(arange(0, 0.3, 0.1).size(0) == 3);
    CHECK(arange(1, 1.3, 0.1).size(0) == 4);
    for (const DType dtype : floats()) {
        const Tensor x = arange(-3, 7, 0.07, {dtype});
        Values expected;
        for (int i = 0; i < 143; ++i) expected.push_back(-3 + 0.07 * i);
        CHECK(x.dtype() == dtype);
        CHECK(difference(x, expected, tolerance(dtype, 1, 10)) == "");
    }
}

TEST_CASE("arange: integers are exact in every type") {
    CHECK(values(arange(-100, 100, 50, {DType::i8})) == Values{-100, -50, 0, 50});
    CHECK(values(arange(250, 256, 1, {DType::u8})) == Values{250, 251, 252, 253, 254, 255});
    CHECK(values(arange(3, -1, -1, {DType::u8})) == Values{3, 2, 1, 0});
    CHECK(arange(0, 0, 1, {DType::u8}).shape() == Shape({0}));
    CHECK(arange(2147483640, 2147483648.0, 4, {DType::i32}).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{2147483640, 2147483644});
    const auto large_integers = arange(0x1p53, 0x1p53 + 8, 2, {DType::i64}).to_vector<std::int64_t>();
    const std::int64_t base = std::int64_t{1} << 53;
    CHECK(large_integers == std::vector<std::int64_t>{base, base + 2, base + 4, base + 6});
    CHECK(arange(0, 100000, 1, {DType::i64}).to_vector<std::int64_t>()[99999] == 99999);
}

TEST_CASE("arange: errors") {
    CHECK_THROWS_WITH_AS(arange(0, 3, 0), "arange: expected finite bounds and a finite step other than 0, got 0, 3, 0",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, INFINITY),
                         "arange: expected finite bounds and a finite step other than 0, got 0, inf, 1", ValueError);
    CHECK_THROWS_WITH_AS(arange(3, 0), "arange: expected a step that leads from start to end, got 3, 0, 1", ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 0.5, -1), "arange: expected a step that leads from start to end, got 0, 0.5, -1",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(NAN, 3), "arange: expected finite bounds and a finite step other than 0, got nan, 3, 1",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 3, NAN),
                         "arange: expected finite bounds and a finite step other than 0, got 0, 3, nan", ValueError);
    CHECK_THROWS_AS(arange(0, 3, INFINITY), ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 1e300), "arange: expected a number of elements that fits into 63 bits, got 1e+300",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 3, 0.5, {DType::i32}), "arange: expected a whole number that fits into i64, got 0.5",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 257, 1, {DType::u8}), "arange: expected a whole number that fits into u8, got 256",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(1, -2, -1, {DType::u8}), "arange: expected a whole number that fits into u8, got -1",
                         ValueError);
    CHECK_THROWS_WITH_AS(arange(0, 2, 1, {DType::boolean}), "arange: expected numbers, got bool", TypeError);
}

TEST_CASE("from and to the host: every type") {
    CHECK(Tensor::from<float>({1.5F, -2}, {2}).to_vector<float>() == std::vector<float>{1.5F, -2});
    CHECK(Tensor::from<std::int8_t>({-128, 127}, {2}).to_vector<std::int8_t>() == std::vector<std::int8_t>{-128, 127});
    CHECK(Tensor::from<std::uint8_t>({0, 255}, {2}).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0, 255});
    CHECK(Tensor::from<std::int32_t>({-5, 7}, {2}).to_vector<std::int32_t>() == std::vector<std::int32_t>{-5, 7});
    CHECK(Tensor::from<std::int64_t>({std::int64_t{1} << 62, -1}, {2}).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{std::int64_t{1} << 62, -1});
    if (device().info().fp64)
        CHECK(Tensor::from<double>({0.1, 1e300}, {2}).to_vector<double>() == std::vector<double>{0.1, 1e300});
    const Tensor flags = Tensor::from<bool>({true, false, true}, {3});
    CHECK(flags.dtype() == DType::boolean);
    CHECK(flags.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 0, 1});
    std::array<bool, 3> read{};
    flags.copy_to(std::span<bool>(read));
    CHECK(read == std::array<bool, 3>{true, false, true});

    const std::array<const float, 4> constant{1, 2, 3, 4};
    CHECK(values(Tensor::from(std::span<const float>(constant), {2, 2})) == Values{1, 2, 3, 4});
    // The host's values may change at once.
    std::vector<float> host(5000, 1);
    const Tensor copied = Tensor::from(host, {5000});
    std::ranges::fill(host, 2.0F);
    CHECK(values(copied) == Values(5000, 1));
    // Row-major, whatever the strides.
    CHECK(transpose(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3})).to_vector<float>() ==
          std::vector<float>{1, 4, 2, 5, 3, 6});
    CHECK(expand(Tensor::from<float>({1, 2}, {2, 1}), {2, 3}).to_vector<float>() ==
          std::vector<float>{1, 1, 1, 2, 2, 2});
    CHECK(Tensor::from<float>({}, {3, 0}).to_vector<float>().empty());
    CHECK(Tensor::from<float>({7}, {}).rank() == 0);
    CHECK(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}).size(-1) == 3);
    CHECK_THROWS_WITH_AS((void)Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}).size(2),
                         "size: expected an axis in [-2, 1], got 2", ShapeError);
}

TEST_CASE("from and to the host: wrong sizes and types") {
    CHECK_THROWS_WITH_AS(Tensor::from<float>({1, 2, 3, 4, 5}, {2, 3}),
                         "Tensor::from: expected 6 values for shape [2, 3], got 5", ShapeError);
    CHECK_THROWS_WITH_AS(Tensor::from(std::vector<std::int64_t>(7), {2, 3}),
                         "Tensor::from: expected 6 values for shape [2, 3], got 7", ShapeError);
    CHECK_THROWS_WITH_AS(Tensor::from<float>({}, {}), "Tensor::from: expected 1 values for shape [], got 0",
                         ShapeError);
    CHECK_THROWS_WITH_AS(Tensor::from<float>({1}, {0}), "Tensor::from: expected 0 values for shape [0], got 1",
                         ShapeError);
    CHECK_THROWS_AS(Tensor::from<float>({1}, {-1}), ShapeError);
    const std::array<std::byte, 7> bytes{};
    CHECK_THROWS_WITH_AS(Tensor::from_bytes(bytes, DType::f32, {1}),
                         "Tensor::from_bytes: expected 4 bytes for shape [1] of f32, got 7", ShapeError);

    const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
    std::vector<float> five(5), seven(7);
    CHECK_THROWS_WITH_AS(x.copy_to(std::span<float>(five)),
                         "copy_to: expected room for 6 elements (shape [2, 3]), got 5", ShapeError);
    CHECK_THROWS_WITH_AS(x.copy_to(std::span<float>(seven)),
                         "copy_to: expected room for 6 elements (shape [2, 3]), got 7", ShapeError);
    CHECK_THROWS_WITH_AS((void)x.to_vector<double>(), "to_vector: expected the tensor's type, f32, got f64", TypeError);
    CHECK_THROWS_WITH_AS((void)x.to_vector<std::int32_t>(), "to_vector: expected the tensor's type, f32, got i32",
                         TypeError);
    CHECK_THROWS_AS((void)tensor({1}, {1}, DType::u8).item<bool>(), TypeError);  // 2 is not a bool
}

TEST_CASE("item: the only element") {
    CHECK(tensor({2.5}, {}).item<float>() == 2.5F);
    CHECK(tensor({2.5}, {1, 1}).item<float>() == 2.5F);
    CHECK(tensor({-7}, {1}, DType::i64).item<std::int64_t>() == -7);
    CHECK(Tensor::from<bool>({true}, {}).item<bool>());
    CHECK(Tensor::from<bool>({true}, {}).item<std::uint8_t>() == 1);
    CHECK(slice(tensor({1, 2, 3}, {3}), 0, 1, 2).item<float>() == 2);
    CHECK_THROWS_WITH_AS((void)tensor({1, 2}, {2}).item<float>(),
                         "item: expected a tensor of one element, got shape [2]", ShapeError);
    CHECK_THROWS_WITH_AS((void)zeros({0}).item<float>(), "item: expected a tensor of one element, got shape [0]",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)tensor({1}, {1}).item<double>(), "item: expected the tensor's type, f32, got f64",
                         TypeError);
    CHECK_THROWS_WITH_AS((void)Tensor().item<float>(), "item: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("to: another type") {
    const Tensor x = tensor({-2.75, 0, 3.5, 300}, {2, 2});
    CHECK(x.to(DType::f32).view().buffer == x.view().buffer);
    CHECK(values(x.to(DType::i32)) == Values{-2, 0, 3, 300});
    CHECK(values(x.to(DType::u8)) == Values{0, 0, 3, 255});
    CHECK(values(x.to(DType::boolean)) == Values{1, 0, 1, 1});
    CHECK(values(x.to(DType::boolean).to(DType::f32)) == Values{1, 0, 1, 1});
    CHECK(values(transpose(x).to(DType::i64)) == Values{-2, 3, 0, 300});
    for (const DType from : all_types())
        for (const DType to : all_types()) {
            const Tensor moved = tensor({1, 0, 1}, {3}, from).to(to);
            CHECK(moved.dtype() == to);
            CHECK(values(moved) == Values{1, 0, 1});
            CHECK(zeros({0, 2}, {from}).to(to).shape() == Shape({0, 2}));
        }
    CHECK_THROWS_WITH_AS((void)Tensor().to(DType::f32), "to: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("to: another device") {
    const Device other = fresh_device();
    const Tensor x = transpose(tensor({1, 2, 3, 4, 5, 6}, {2, 3}));
    CHECK(x.to(device()).view().buffer == x.view().buffer);
    const Tensor moved = x.to(other);
    CHECK(moved.device() == other);
    CHECK(moved.shape() == Shape({3, 2}));
    CHECK(values(moved) == values(x));
    CHECK(values(moved.to(device()) + x) == Values{2, 8, 4, 10, 6, 12});
    for (const DType dtype : all_types()) CHECK(values(ones({3}, {dtype}).to(other)) == Values{1, 1, 1});
    CHECK(zeros({0, 2}).to(other).shape() == Shape({0, 2}));
    Tensor target = zeros({3, 2});
    target.copy_(moved);
    CHECK(values(target) == values(x));
    CHECK_THROWS_WITH_AS((void)Tensor().to(other), "to: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("clone: its own memory, dense") {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
    Tensor copy = transpose(x).clone();
    CHECK(copy.view().dense());
    copy.fill_(0);
    CHECK(values(x) == Values{1, 2, 3, 4, 5, 6});
    CHECK(values(expand(tensor({3}, {1}), {4}).clone()) == Values{3, 3, 3, 3});
    CHECK_THROWS_WITH_AS((void)Tensor().clone(), "clone: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("random: the same seed gives the same values, another seed or position others") {
    const KeepRandom keep;
    for (const DType dtype : floats()) {
        const auto draw = [&] {
            return std::array{values(uniform({3, 7}, -1, 1, {dtype})), values(normal({5, 5}, 2, 3, {dtype})),
                              values(bernoulli({101}, 0.5, {dtype}))};
        };
        manual_seed(7);
        CHECK(random_state(device()).seed == 7);
        CHECK(random_state(device()).offset == 0);
        const auto first = draw();
        const RandomState after = random_state(device());
        const auto second = draw();
        manual_seed(7);
        CHECK(draw() == first);
        CHECK(draw() == second);
        set_random_state(device(), after);
        CHECK(draw() == second);
        manual_seed(8);
        const auto other = draw();
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(first[i] != second[i]);
            CHECK(first[i] != other[i]);
        }
    }
    // Every device has the seed and its own position.
    manual_seed(9);
    const auto expected = values(uniform({10}));
    const Device new_device = fresh_device();
    CHECK(values(uniform({10}, 0, 1, {.device = new_device})) == expected);
    // Empty draws do not advance the position.
    const auto offset = random_state(device()).offset;
    CHECK(uniform({0, 3}).shape() == Shape({0, 3}));
    CHECK(random_state(device()).offset == offset);
}

TEST_CASE("random: moments and bounds") {
    const KeepRandom keep;
    const std::int64_t size = small_cases() ? 1001 : 100003;
    const double errors =
        5 / std::sqrt(static_cast<double>(size));  // five standard errors for a standard deviation of 1
    const auto moments = [](const Values& x) {
        double mean = 0, square = 0;
        for (const double value : x) mean += value / static_cast<double>(x.size());
        for (const double value : x) square += (value - mean) * (value - mean) / static_cast<double>(x.size());
        return std::pair(mean, std::sqrt(square));
    };
    for (const DType dtype : floats()) {
        manual_seed(2025);
        const auto uniform_values = values(uniform({size}, -3, 5, {dtype}));
        CHECK(std::ranges::all_of(uniform_values, [](double x) { return x >= -3 && x < 5; }));
        CHECK(std::abs(moments(uniform_values).first - 1) < 2.4 * errors);
        CHECK(std::abs(moments(uniform_values).second - 8 / std::sqrt(12)) < 2.4 * errors);
        const auto normal_values = values(normal({size}, -2, 0.5, {dtype}));
        CHECK(std::abs(moments(normal_values).first + 2) < 0.5 * errors);
        CHECK(std::abs(moments(normal_values).second - 0.5) < 0.5 * errors);
        const auto bernoulli_values = values(bernoulli({size}, 0.3, {dtype}));
        CHECK(std::ranges::all_of(bernoulli_values, [](double x) { return x == 0 || x == 1; }));
        CHECK(std::abs(moments(bernoulli_values).first - 0.3) < 0.46 * errors);
        CHECK(values(bernoulli({50}, 0, {dtype})) == Values(50, 0));
        CHECK(values(bernoulli({50}, 1, {dtype})) == Values(50, 1));
        CHECK(values(uniform({5}, 2, 2, {dtype})) == Values(5, 2));
        CHECK(values(normal({5}, 2, 0, {dtype})) == Values(5, 2));
    }
    // Other types have the same numbers, converted.
    manual_seed(1);
    const Tensor real = uniform({100}, 0, 10);
    manual_seed(1);
    const Tensor integers = uniform({100}, 0, 10, {DType::i32});
    CHECK(integers.dtype() == DType::i32);
    CHECK(values(integers) == values(real.to(DType::i32)));
    CHECK(bernoulli({5}, 0.5, {DType::boolean}).dtype() == DType::boolean);
    CHECK(uniform({}).rank() == 0);
}

TEST_CASE("random: errors") {
    const KeepRandom keep;
    CHECK_THROWS_WITH_AS(uniform({2}, 1, 0), "uniform: expected finite bounds, low <= high, got 1 and 0", ValueError);
    CHECK_THROWS_WITH_AS(uniform({2}, NAN, 0), "uniform: expected finite bounds, low <= high, got nan and 0",
                         ValueError);
    CHECK_THROWS_WITH_AS(uniform({2}, 0, INFINITY), "uniform: expected finite bounds, low <= high, got 0 and inf",
                         ValueError);
    CHECK_THROWS_WITH_AS(normal({2}, 0, -1), "normal: expected a finite mean and a std of at least 0, got 0 and -1",
                         ValueError);
    CHECK_THROWS_WITH_AS(normal({2}, 0, NAN), "normal: expected a finite mean and a std of at least 0, got 0 and nan",
                         ValueError);
    CHECK_THROWS_WITH_AS(normal({2}, INFINITY, 1),
                         "normal: expected a finite mean and a std of at least 0, got inf and 1", ValueError);
    CHECK_THROWS_WITH_AS(bernoulli({2}, 1.5), "bernoulli: expected a probability in [0, 1], got 1.5", ValueError);
    CHECK_THROWS_WITH_AS(bernoulli({2}, -0.1), "bernoulli: expected a probability in [0, 1], got -0.1", ValueError);
    CHECK_THROWS_AS(bernoulli({2}, NAN), ValueError);
    CHECK_THROWS_AS(uniform({-2}), ShapeError);
    CHECK(random_state(device()).offset == keep.before.offset);
}

TEST_CASE("linspace: both ends, one and zero steps, integers, f16 and bf16, errors") {
    for (const DType dtype : floats()) {
        const Values got = values(linspace(-1, 2, 7, {dtype}));
        CHECK(difference(linspace(-1, 2, 7, {dtype}), {-1, -0.5, 0, 0.5, 1, 1.5, 2}, tolerance(dtype, 2)) == "");
        CHECK(got.front() == -1);
        CHECK(got.back() == 2);
    }
    CHECK(values(linspace(3, 9, 1)) == Values{3});
    CHECK(linspace(3, 9, 0).shape() == Shape{0});
    CHECK(values(linspace(2, 2, 3)) == Values{2, 2, 2});
    CHECK(values(linspace(0.1, 0.7, 101)).back() == static_cast<float>(0.7));
    CHECK(values(linspace(0, 1, 3, {DType::f16})) == Values{0, 0.5, 1});
    CHECK(values(linspace(-5, 5, 4, {DType::i64})) == Values{-5, -1, 1, 5});
    CHECK(values(linspace(255, 0, 3, {DType::u8})) == Values{255, 127, 0});
    CHECK(values(linspace(0.9, 2.9, 3, {DType::i32})) == Values{0, 1, 2});
    CHECK(values(linspace(7, 1, 1, {DType::i32})) == Values{7});
    CHECK_THROWS_WITH_AS((void)linspace(0, 1, -1), "linspace: expected at least 0 steps, got -1", ValueError);
    CHECK_THROWS_WITH_AS((void)linspace(0, 1, 2, {DType::boolean}), "linspace: expected a numeric type, got bool",
                         TypeError);
    CHECK_THROWS_WITH_AS((void)linspace(0, 300, 2, {DType::u8}),
                         "linspace: expected bounds representable in u8, got 300", ValueError);
    CHECK_THROWS_AS((void)linspace(0, 1e300, 2, {DType::i64}), ValueError);
}

TEST_CASE("logspace: powers, another base, errors") {
    CHECK(difference(logspace(-1, 2, 4), {0.1, 1, 10, 100}, tolerance(DType::f32, 4)) == "");
    CHECK(difference(logspace(0, 3, 4, 2), {1, 2, 4, 8}, tolerance(DType::f32, 4)) == "");
    CHECK(logspace(0, 3, 0).shape() == Shape{0});
    CHECK_THROWS_WITH_AS((void)logspace(0, 3, 4, 2, {DType::i64}), "logspace: expected a floating type, got i64",
                         TypeError);
}

TEST_CASE("tril_indices, triu_indices: the indices kept by tril and triu") {
    for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}, Shape{4, 4}, Shape{1, 1}, Shape{0, 3}, Shape{3, 0}})
        for (std::int64_t offset = -6; offset <= 6; ++offset) {
            CAPTURE(shape.str());
            CAPTURE(offset);
            const auto indices_of = [&](const Tensor& triangle) { return values(transpose(nonzero(triangle), 0, 1)); };
            CHECK(values(tril_indices(shape[0], shape[1], offset)) == indices_of(tril(ones(shape), offset)));
            CHECK(values(triu_indices(shape[0], shape[1], offset)) == indices_of(triu(ones(shape), offset)));
        }
    CHECK(tril_indices(0, 3).shape() == Shape{2, 0});
    CHECK(triu_indices(2, 2, 0, {DType::i32}).dtype() == DType::i32);
    CHECK_THROWS_WITH_AS((void)tril_indices(-1, 2), "tril_indices: expected sizes of at least 0, got -1 and 2",
                         ValueError);
    CHECK_THROWS_WITH_AS((void)triu_indices(1, 2, 0, {DType::f32}), "triu_indices: expected i64 or i32, got f32",
                         TypeError);
}

TEST_CASE("empty, empty_like: shapes and types") {
    CHECK(empty({2, 3}, {DType::i32}).shape() == Shape{2, 3});
    CHECK(empty({2, 3}, {DType::i32}).dtype() == DType::i32);
    const Tensor like = empty_like(zeros({2, 0}, {DType::f16}));
    CHECK(like.shape() == Shape{2, 0});
    CHECK(like.dtype() == DType::f16);
    Tensor written = empty({3});
    written.fill_(2);
    CHECK(values(written) == Values{2, 2, 2});
    CHECK_THROWS_AS((void)empty_like(Tensor()), ValueError);
}
