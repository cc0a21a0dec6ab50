// Copies, casts and fills.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/ops/engine/elementwise_types.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Domain;
using ops::Expression;
using ops::View;

TEST_CASE("elementwise: f16 and bf16, every bit pattern to f32 and back, and every tie") {
    const int pattern_step = small_cases() ? 61 : 1;
    const auto check = [&]<class T>(T, DType dtype) {
        CAPTURE(name_of(dtype));
        std::vector<T> patterns;
        for (int i = 0; i < 0x10000; i += pattern_step) patterns.emplace_back().bits = static_cast<std::uint16_t>(i);
        const Tensor x = Tensor::from(patterns, {static_cast<std::int64_t>(patterns.size())});
        const auto upcast = x.to(DType::f32).template to_vector<float>();
        const auto back = x.to(DType::f32).to(dtype).template to_vector<T>(),
                   copied = x.clone().template to_vector<T>();
        // Strided, so that it is not a driver copy.
        const View every_second = ops::sliced(x.view(), 0, 1, static_cast<std::int64_t>(patterns.size()) / 2, 2);
        const auto sliced = Tensor(ops::evaluate(Expression(every_second), device())).template to_vector<T>();
        int wrong = 0, copy_mismatches = 0;
        std::vector<double> rounding_ties;
        for (std::size_t i = 0; i < patterns.size(); ++i) {
            const float value = patterns[i];
            // Denormal floats, which are also bf16 values, may be flushed to zero.
            const bool tiny = std::abs(value) < 0x1p-126F;
            const auto same = [&](float got) {
                return std::isnan(value)
                           ? std::isnan(got)
                           : (got == value || (tiny && got == 0)) && std::signbit(got) == std::signbit(value);
            };
            if (!same(upcast[i]) || !same(back[i])) ++wrong;
            if (copied[i].bits != patterns[i].bits || (i % 2 == 1 && sliced[i / 2].bits != patterns[i].bits))
                ++copy_mismatches;
            T next = patterns[i];
            ++next.bits;
            if (std::isnan(value) || std::isinf(value) || std::isnan(static_cast<float>(next)) || tiny) continue;
            const double step = std::isinf(static_cast<float>(next))
                                    ? (dtype == DType::f16 ? 32 : 0x1p120)
                                    : std::abs(static_cast<double>(next) - static_cast<double>(value));
            const auto tie = std::copysign(std::abs(static_cast<double>(value)) + step / 2, value);
            rounding_ties.insert(
                rounding_ties.end(),
                {tie, static_cast<double>(std::nextafter(static_cast<float>(tie), 0.0F)),
                 static_cast<double>(std::nextafter(static_cast<float>(tie), 2 * static_cast<float>(tie)))});
        }
        CHECK(wrong == 0);
        CHECK(copy_mismatches == 0);
        // NaNs whose payload would round to infinity, or to zero.
        std::vector<float> nans;
        for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU, 0x7fc00000U})
            nans.push_back(std::bit_cast<float>(bits));
        for (const double value : values(Tensor::from(nans, {5}).to(dtype))) CHECK(std::isnan(value));
        std::vector<DType> from{DType::f32};
        if (device().info().fp64) from.push_back(DType::f64);
        for (const DType source : from) {
            if (source == DType::f64)  // next to the ties, where f32 is too coarse
                for (std::size_t i = 0; i < rounding_ties.size(); i += 3)
                    rounding_ties[i + 1] = rounding_ties[i] * (1 - 0x1p-50),
                                      rounding_ties[i + 2] = rounding_ties[i] * (1 + 0x1p-50);
            const auto got = tensor(rounding_ties, {static_cast<std::int64_t>(rounding_ties.size())}, source)
                                 .to(dtype)
                                 .template to_vector<T>();
            int mismatches = 0;
            for (std::size_t i = 0; i < rounding_ties.size(); ++i)
                mismatches += got[i].bits == T(rounding_ties[i]).bits ? 0 : 1;
            CHECK(mismatches == 0);
        }
    };
    check(float16(), DType::f16);
    check(bfloat16(), DType::bf16);
}

TEST_CASE("elementwise: long copies by a kernel on CPUs preserve every bit and write nothing else") {
    if (small_cases()) return;
    for (const DType dtype : {DType::f32, DType::i64, DType::boolean, DType::f16}) {
        const auto count = static_cast<std::int64_t>((std::size_t{1} << 20) / size_of(dtype)) + 5;
        std::vector<double> elements;
        for (std::int64_t i = 0; i < count; ++i)
            elements.push_back(static_cast<double>(dtype == DType::boolean ? i % 3 == 0 : i % 4099));
        if (is_floating(dtype))
            elements[1000] = NAN, elements[1001] = 1e-42, elements[1002] = -kInfinity, elements[1003] = -0.0;
        const Tensor from = tensor(elements, {count}, dtype);
        const Tensor to = tensor(std::vector<double>(elements.size() + 2, 1), {count + 2}, dtype);
        ops::copy(from.view(), ops::sliced(to.view(), 0, 1, count));
        const auto expected = values(from), got = values(to);
        int wrong = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const bool both_nan = std::isnan(expected[i]) && std::isnan(got[i + 1]);
            if (!both_nan && (expected[i] != got[i + 1] || std::signbit(expected[i]) != std::signbit(got[i + 1])))
                ++wrong;
        }
        CHECK(wrong == 0);
        CHECK(got.front() == 1);
        CHECK(got.back() == 1);
    }
}

TEST_CASE("elementwise: permuted copies large enough for square tiles") {
    struct Case {
        Shape shape;
        Dims order;
    };
    for (const Case& test_case :
         {Case{{70, 83}, {1, 0}}, Case{{3, 37, 50}, {0, 2, 1}}, Case{{2, 5, 21, 33}, {0, 2, 3, 1}},
          Case{{2, 21, 33, 3}, {0, 3, 1, 2}}, Case{{5, 33, 34}, {2, 0, 1}}, Case{{4, 18, 5, 17}, {3, 1, 2, 0}}})
        for (const DType dtype : {DType::f32, DType::i64, DType::f16}) {
            // f16 and bf16 have too few digits to number the elements of large arrays, and no separate kernel.
            if (dtype == DType::f16 && (small_cases() || test_case.shape.numel() > 2000)) continue;
            if (small_cases() && (test_case.shape.rank() == 3 || (test_case.shape.rank() == 4 && dtype == DType::i64)))
                continue;
            CAPTURE(test_case.shape.str());
            CAPTURE(test_case.order.str());
            const std::int64_t count = test_case.shape.numel();
            std::vector<double> elements;
            for (std::int64_t i = 0; i < count + 8; ++i) elements.push_back(static_cast<double>(i));
            const Tensor room = tensor(elements, {count + 8}, dtype);
            const View from =
                ops::permuted(ops::reshaped(ops::sliced(room.view(), 0, 3, count), test_case.shape), test_case.order);
            std::vector<double> expected;  // source index of each element in the new order
            for (std::int64_t i = 0; i < count; ++i) {
                std::int64_t rest = i, at = 3;
                for (int axis = from.rank() - 1; axis >= 0; --axis) {
                    at += rest % from.shape[axis] * from.strides[axis];
                    rest /= from.shape[axis];
                }
                expected.push_back(static_cast<double>(at));
            }
            const Tensor to = tensor(std::vector<double>(elements.size(), -1), {count + 8}, dtype);
            ops::copy(from, ops::reshaped(ops::sliced(to.view(), 0, 5, count), from.shape));
            const auto got = values(to);
            CHECK(difference({got.begin() + 5, got.end() - 3}, expected, {}) == "");
            CHECK(std::vector<double>(got.begin(), got.begin() + 5) == std::vector<double>(5, -1));
            CHECK(std::vector<double>(got.end() - 3, got.end()) == std::vector<double>(3, -1));
            // Into a permuted view, from a dense one and from itself.
            const View back =
                ops::permuted(ops::reshaped(ops::sliced(to.view(), 0, 0, count), test_case.shape), test_case.order);
            ops::copy(ops::reshaped(ops::sliced(room.view(), 0, 3, count), from.shape), back);
            const auto permuted_values = values(Tensor(ops::dense_copy_if_needed(back)));
            CHECK(permuted_values == std::vector<double>(elements.begin() + 3, elements.end() - 5));
        }
    // One broadcast row, and a matrix onto itself.
    const Tensor row = random_tensor({1, 90}, 7), square = random_tensor({66, 66}, 8);
    const Tensor columns = Tensor(
        ops::evaluate(Expression(ops::permuted(ops::expanded("test", row.view(), {80, 90}), {1, 0})), row.device()));
    CHECK(values(columns)[80 * 89 + 79] == values(row)[89]);
    CHECK(values(columns)[80 * 17] == values(row)[17]);
    const auto before = values(square);
    ops::copy(ops::permuted(square.view(), {1, 0}), square.view());
    const auto after = values(square);
    int wrong = 0;
    for (std::size_t i = 0; i < 66; ++i)
        for (std::size_t j = 0; j < 66; ++j) wrong += after[i * 66 + j] == before[j * 66 + i] ? 0 : 1;
    CHECK(wrong == 0);
}

TEST_CASE("elementwise: casts between all types") {
    const std::vector<double> integral{0,   1,   -1,  2,    100,   -100,  127,        -128,         128,
                                       200, 255, 256, 1000, -1000, 65536, 2147483647, -2147483648.0};
    const std::vector<double> fractional{0.5, -0.5, 0.99, -0.99, 1.5,  -1.5,  2.5,  126.7,     -127.9,     255.9,
                                         1e6, -1e6, 3e9,  -3e9,  1e19, -1e19, 1e30, kInfinity, -kInfinity, NAN};
    // 2^63 - 1 and 2^64 - 1 are read back as doubles, 2^63 and 2^64.
    const auto saturated = [](double value, DType to) {
        const bool is_signed = dtype_info(to).is_signed;
        const int bits = 8 * static_cast<int>(size_of(to));
        const double upper_bound = std::ldexp(1, is_signed ? bits - 1 : bits);
        return std::isnan(value) ? 0.0
                                 : std::trunc(std::clamp(value, is_signed ? -upper_bound : 0,
                                                         bits == 64 ? upper_bound : upper_bound - 1));
    };
    auto types = floats();
    std::ranges::copy_if(kDTypes, std::back_inserter(types), [](DType type) {
        const bool is_tested = !small_cases() || (type != DType::u16 && type != DType::u32 && type != DType::i16);
        return type != DType::f32 && type != DType::f64 && is_tested;
    });
    for (const DType from : types)
        for (const DType to : types) {
            std::vector<double> in;
            for (const double value : integral)
                in.push_back(as_type(from == DType::u64 ? std::abs(value) : value, from));
            if (is_floating(from))
                for (const double value : fractional) in.push_back(as_type(value, from));
            std::vector<double> expected;
            for (const double value : in) {
                if (to == DType::boolean) expected.push_back(value != 0 ? 1 : 0);
                else if (is_floating(to) || !is_floating(from)) expected.push_back(as_type(value, to));
                else expected.push_back(saturated(value, to));
            }
            const Tensor x = tensor(in, {static_cast<std::int64_t>(in.size())}, from);
            INFO(fmt::format("{} to {}", name_of(from), name_of(to)));
            CHECK(difference(x.to(to), expected, {}) == "");
        }
}

TEST_CASE("elementwise: fill, for every type, dense and strided") {
    for (const DType dtype : types_of(Domain::choose)) {
        Random random(3);
        StridedArray array = random_strided({4, 3, 5}, random, Broadcast::no, dtype);
        ops::fill(array.view(), dtype == DType::boolean ? 1 : 7);
        array.expect({4, 3, 5}, [&](const Dims&) { return dtype == DType::boolean ? 1 : 7; });
        CHECK(array.check() == "");
        const View dense = View::make(device(), dtype, {33});
        ops::fill(dense, 0);
        CHECK(values(Tensor(dense)) == std::vector<double>(33, 0));
    }
}
