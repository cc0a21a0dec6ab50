// Every function of the table compared with plain C++, over all types and operand shapes.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <ops/support/work_split.hpp>
#include <reference/elementwise_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Domain;
using ops::Expression;
using ops::Function;
using ops::View;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr DType kReducedPrecision[] = {DType::f16, DType::bf16};

/// All types that a function supports; under slow checkers f16 and bf16 only for some functions of each kind.
std::vector<DType> types_of(Domain domain, bool with_reduced_precision = true) {
    if (domain == Domain::logic) return {DType::boolean};
    const bool integral = domain == Domain::integer || domain == Domain::shift;
    auto types = integral ? std::vector<DType>() : floats();
    if (with_reduced_precision && !integral)
        types.insert(types.end(), std::begin(kReducedPrecision), std::end(kReducedPrecision));
    if (domain != Domain::real) std::ranges::copy_if(kDTypes, std::back_inserter(types), is_integer);
    if (domain == Domain::compare || domain == Domain::choose || domain == Domain::integer)
        types.push_back(DType::boolean);
    return types;
}

/// Under slow checkers a function runs in some of the integer types, in turn.
bool has_turn(Function function, DType dtype) {
    return !small_cases() || !is_integer(dtype) || (static_cast<int>(dtype) + static_cast<int>(function)) % 4 == 0;
}

std::vector<double> special_values() {
    return {0.0,  -0.0,  1,  -1,  0.5, -2.5, 3,         -3,         1e-30, -1e-30,
            1e30, -1e30, 88, -87, 200, -200, kInfinity, -kInfinity, NAN};
}

Expression applied(const ElementwiseCase& test_case, const std::vector<View>& views) {
    const std::vector<Expression> inputs(views.begin(), views.end());
    return Expression::apply(test_case.function, inputs, scalars(test_case.parameters));
}

std::string check(const ElementwiseCase& test_case, DType dtype, const std::vector<std::vector<double>>& in) {
    std::vector<View> views;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool condition = ops::info(test_case.function).domain == Domain::choose && i == 0;
        views.push_back(
            tensor(in[i], {static_cast<std::int64_t>(in[i].size())}, condition ? DType::boolean : dtype).view());
    }
    const View out = ops::evaluate(applied(test_case, views), device());
    const std::string text = difference(Tensor(out), expected(test_case, dtype, in), allowed(test_case, dtype));
    return text.empty() ? "" : fmt::format("{} of {}: {}", ops::info(test_case.function).name, name_of(dtype), text);
}

}  // namespace

TEST_CASE("elementwise: every row of the table has a case") {
    for (const Function function : all_functions())
        CHECK_MESSAGE(case_of(function) != nullptr, "no case for ", ops::info(function).name);
    CHECK(elementwise_cases().size() == all_functions().size());
}

TEST_CASE("elementwise: every function, in every supported type, on random values") {
    const std::int64_t count = small_cases() ? 37 : 1009;
    for (const Function function : all_functions()) {
        const ElementwiseCase* test_case = case_of(function);
        if (test_case == nullptr) continue;  // reported above
        const ops::FunctionInfo& row = ops::info(function);
        const bool common = function == Function::add || function == Function::where || function == Function::clamp ||
                            function == Function::gelu || function == Function::less;
        for (const DType dtype : types_of(row.domain, common || !small_cases())) {
            // Otherwise f16 and bf16 alternate: they differ only in loads and stores.
            if (is_16bit_float(dtype) && !common && (dtype == DType::f16) != (static_cast<int>(function) % 2 == 0))
                continue;
            // Powers of integers have their own test: most are beyond 2^64.
            if (!is_floating(dtype) && (function == Function::pow || function == Function::pow_scalar)) continue;
            if (!has_turn(function, dtype) || (function == Function::bitwise_not && dtype == DType::boolean)) continue;
            ElementwiseCase suited = *test_case;
            if (!is_floating(dtype))
                for (double& parameter : suited.parameters)
                    parameter = dtype_info(dtype).is_signed ? std::trunc(parameter) : std::abs(std::trunc(parameter));
            std::vector<std::vector<double>> in;
            for (int i = 0; i < row.inputs; ++i)
                in.push_back(inputs_for(suited, row.domain == Domain::choose && i == 0 ? DType::boolean : dtype, count,
                                        static_cast<std::uint64_t>(i) + 1));
            CHECK(check(suited, dtype, in) == "");
        }
    }
}

TEST_CASE("elementwise: every floating function on zeros, infinities, NaN and large numbers") {
    const auto special = special_values();
    for (const Function function : all_functions()) {
        const ElementwiseCase* test_case = case_of(function);
        const ops::FunctionInfo& row = ops::info(function);
        if (test_case == nullptr || row.inputs == 3 || row.domain == Domain::integer || row.domain == Domain::shift ||
            row.domain == Domain::logic || function == Function::binary_cross_entropy)
            continue;  // the last input must be in [0, 1]
        for (const DType dtype : types_of(Domain::real, !small_cases())) {
            if (is_16bit_float(dtype) && (dtype == DType::f16) != (static_cast<int>(function) % 2 == 0)) continue;
            // All pairs.
            std::vector<std::vector<double>> in(static_cast<std::size_t>(row.inputs));
            for (const double a : special)
                for (const double b : row.inputs == 2 ? special : std::vector{0.0}) {
                    in[0].push_back(as_type(a, dtype));
                    if (row.inputs == 2) in[1].push_back(as_type(b, dtype));
                }
            CHECK(check(*test_case, dtype, in) == "");
        }
    }
}

TEST_CASE("elementwise: signs of zero survive copies, casts and multiplication") {
    const Tensor zeros = tensor({0.0, -0.0, 0.0, -0.0}, {4});
    const Expression factors[] = {zeros.view()};
    const Scalar minus[] = {-1};
    const auto signs = [](const View& view) {
        std::vector<bool> out;
        for (const double value : values(Tensor(view))) out.push_back(std::signbit(value));
        return out;
    };
    CHECK(signs(ops::evaluate(factors[0], device())) == std::vector{false, true, false, true});
    CHECK(signs(ops::evaluate(Expression::apply(Function::mul_scalar, factors, minus), device())) ==
          std::vector{true, false, true, false});
    CHECK(signs(ops::evaluate(Expression::apply(Function::neg, factors), device())) ==
          std::vector{true, false, true, false});
}

TEST_CASE("elementwise: operands of all shapes, broadcast, permuted and sliced") {
    // c = a - b, over shapes that neither commute nor merge by accident.
    const int rounds = small_cases() ? 15 : 120;
    for (int round = 0; round < rounds; ++round) {
        Random random(static_cast<std::uint64_t>(round));
        const int rank = round % 9;
        const ops::KernelStyleScope form(round / 9 % 2 == 0 && has_kernel_style(KernelStyle::simd) ? KernelStyle::simd
                                                                                                   : KernelStyle::simt);
        Shape shape;
        for (int axis = 0; axis < rank; ++axis)
            shape.push_back(random.below(rank > 5 ? 3 : 5) + (random.below(12) == 0 ? 0 : 1));
        CAPTURE(shape.str());
        const StridedArray a = random_strided(shape, random, Broadcast::yes),
                           b = random_strided(shape, random, Broadcast::yes);
        StridedArray out = random_strided(shape, random, Broadcast::no);
        // Broadcasting is computed from the operands, so shape may be larger than both.
        const Expression inputs[] = {a.view(), b.view()};
        const Expression difference_of = Expression::apply(Function::sub, inputs);
        if (difference_of.shape() == shape) {
            CHECK(difference(Tensor(ops::evaluate(difference_of, device())),
                             combined(shape, a, b, [](double x, double y) { return x - y; }), {}) == "");
        }
        ops::evaluate(difference_of, out.view());
        out.expect(shape, [&](const Dims& at) { return a.at(at) - b.at(at); });
        CHECK(out.check() == "");  // including elements outside of the view
    }
}

TEST_CASE("elementwise: f16 and bf16 of all shapes, broadcast, permuted and sliced") {
    for (int round = 0; round < (small_cases() ? 4 : 30); ++round) {
        Random random(2000 + static_cast<std::uint64_t>(round));
        const DType dtype = kReducedPrecision[round % 2];
        Shape shape;
        for (int axis = 0; axis < round % 5; ++axis) shape.push_back(1 + random.below(6));
        CAPTURE(shape.str());
        CAPTURE(name_of(dtype));
        const StridedArray a = random_strided(shape, random, Broadcast::yes, dtype),
                           b = random_strided(shape, random, Broadcast::yes, dtype);
        StridedArray out = random_strided(shape, random, Broadcast::no, dtype);
        const Expression inputs[] = {a.view(), b.view()};
        ops::evaluate(Expression::apply(Function::sub, inputs), out.view());
        // A difference of two f16 or bf16 numbers of similar size is exact in f32, or its second rounding is harmless.
        out.expect(shape, [&](const Dims& at) { return a.at(at) - b.at(at); });
        CHECK(out.check() == "");
    }
}

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

TEST_CASE("elementwise: trees over f16 and bf16 are computed in f32, but intermediate casts are rounded") {
    const Tensor x = tensor({2049, 1, 0.1}, {3}, DType::f32);
    const Scalar increment[] = {1}, large_decrement[] = {-2048};
    const Expression rounded[] = {Expression::cast(x.view(), DType::f16)};
    const Expression back = Expression::cast(rounded[0], DType::f32);
    CHECK(values(Tensor(ops::evaluate(back, device()))) == std::vector<double>{2048, 1, as_type(0.1, DType::f16)});
    // 2048 + 1 is not an f16 value, the sum minus 2048 is.
    const Expression sum[] = {Expression::apply(Function::add_scalar, rounded, increment)};
    CHECK(values(Tensor(ops::evaluate(Expression::apply(Function::add_scalar, sum, large_decrement), device())))[0] ==
          1);
    CHECK(values(Tensor(ops::evaluate(Expression::constant(0.1, DType::bf16), device())))[0] ==
          as_type(0.1, DType::bf16));
    CHECK(values(Tensor(ops::evaluate(Expression::cast(Expression::constant(0.1, DType::bf16), DType::f32),
                                      device())))[0] == as_type(0.1, DType::bf16));
    const Expression f16_and_bf16[] = {rounded[0], Expression::cast(x.view(), DType::bf16)},
                     f16_and_f32[] = {rounded[0], x.view()};
    CHECK_THROWS_WITH_AS(Expression::apply(Function::add, f16_and_bf16),
                         "add: expected tensors of one type (convert with .to(DType)), got f16, bf16", TypeError);
    CHECK_THROWS_WITH_AS(Expression::apply(Function::mul, f16_and_f32),
                         "mul: expected tensors of one type (convert with .to(DType)), got f16, f32", TypeError);
}

TEST_CASE("elementwise: three operands of different shapes") {
    for (int round = 0; round < (small_cases() ? 4 : 30); ++round) {
        Random random(1000 + static_cast<std::uint64_t>(round));
        const ops::KernelStyleScope form(round / 2 % 2 == 0 && has_kernel_style(KernelStyle::simd) ? KernelStyle::simd
                                                                                                   : KernelStyle::simt);
        Shape shape;
        for (int axis = 0; axis < 1 + round % 4; ++axis) shape.push_back(1 + random.below(6));
        CAPTURE(shape.str());
        const StridedArray condition = random_strided(shape, random, Broadcast::yes, DType::boolean),
                           a = random_strided(shape, random, Broadcast::yes),
                           b = random_strided(shape, random, Broadcast::yes);
        StridedArray out = random_strided(shape, random, Broadcast::no);
        const Expression inputs[] = {condition.view(), a.view(), b.view()};
        ops::evaluate(Expression::apply(Function::where, inputs), out.view());
        out.expect(shape, [&](const Dims& at) { return condition.at(at) != 0 ? a.at(at) : b.at(at); });
        CHECK(out.check() == "");
    }
}

TEST_CASE("elementwise: sizes around and above the elements per work-item") {
    std::vector<Shape> shapes{{0}, {1}, {0, 5}, {5, 0, 2}, {255}, {257}, {3, 1}, {1, 3}};
    if (!small_cases())
        shapes.insert(shapes.end(),
                      {{8191}, {8192}, {8193}, {20011}, {3001, 7}, {7, 3001}, {9, 8193}, {2, 3, 8200}, {40000, 1, 3}});
    for (const Shape& shape : shapes) {
        CAPTURE(shape.str());
        const Tensor a = random_tensor(shape, 1), b = random_tensor(shape, 2);
        const auto x = values(a), y = values(b);
        std::vector<double> sum;
        for (std::size_t i = 0; i < x.size(); ++i) sum.push_back(as_type(x[i] + y[i], DType::f32));
        const Expression inputs[] = {a.view(), b.view()};
        CHECK(difference(Tensor(ops::evaluate(Expression::apply(Function::add, inputs), device())), sum, {}) == "");
        if (shape.rank() < 2) continue;
        // Transposed against dense: no axes merge.
        Dims order;
        for (int axis = shape.rank() - 1; axis >= 0; --axis) order.push_back(axis);
        const View permuted_view = ops::permuted(a.view(), order);
        const View back = ops::View::make(device(), DType::f32, permuted_view.shape);
        ops::copy(permuted_view, back);
        CHECK(difference(Tensor(ops::dense_copy_if_needed(ops::permuted(back, order))), x, {}) == "");
    }
}

TEST_CASE("elementwise: more rows than simt devices have groups in one dimension") {
    if (small_cases()) return;
    const ops::KernelStyleScope form(KernelStyle::simt);
    const std::int64_t rows = 65535 + 3, columns = 256;  // one group per row
    std::vector<double> a, b;
    for (std::int64_t i = 0; i < rows; ++i) a.push_back(static_cast<double>(1 + i % 101));
    for (std::int64_t i = 0; i < columns; ++i) b.push_back(static_cast<double>(1 + i % 103));
    const Tensor down = tensor(a, {rows, 1}, DType::i8), across = tensor(b, {1, columns}, DType::i8);
    const Expression inputs[] = {down.view(), across.view()};
    const auto out = values(Tensor(ops::evaluate(Expression::apply(Function::max, inputs), device())));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i) wrong += out[i] != std::max(a[i / 256], b[i % 256]) ? 1 : 0;
    CHECK(out.size() == static_cast<std::size_t>(rows * columns));
    CHECK(wrong == 0);
}

TEST_CASE("elementwise: the output may be an input, and may overlap inputs") {
    const auto new_view = [] { return random_tensor({60}, 7).view(); };
    const auto before = values(random_tensor({60}, 7));
    const auto other = values(random_tensor({60}, 8));
    const View b = random_tensor({60}, 8).view();
    const auto sub = [](const View& x, const View& y) {
        const Expression inputs[] = {x, y};
        return Expression::apply(Function::sub, inputs);
    };
    const auto check = [](const View& view, const auto& expected) {
        std::vector<double> all;
        for (std::size_t i = 0; i < 60; ++i) all.push_back(as_type(expected(i), DType::f32));
        CHECK(difference(Tensor(view), all, {}) == "");
    };
    View a = new_view();
    ops::evaluate(sub(a, b), a);
    check(a, [&](std::size_t i) { return before[i] - other[i]; });
    a = new_view();
    ops::evaluate(sub(b, a), a);
    check(a, [&](std::size_t i) { return other[i] - before[i]; });
    a = new_view();
    ops::evaluate(sub(a, a), a);
    check(a, [](std::size_t) { return 0.0; });
    // Shifted by one, upwards and downwards.
    a = new_view();
    ops::evaluate(sub(ops::sliced(a, 0, 0, 59), ops::sliced(b, 0, 0, 59)), ops::sliced(a, 0, 1, 59));
    check(a, [&](std::size_t i) { return i == 0 ? before[0] : before[i - 1] - other[i - 1]; });
    a = new_view();
    ops::evaluate(sub(ops::sliced(b, 0, 1, 59), ops::sliced(a, 0, 1, 59)), ops::sliced(a, 0, 0, 59));
    check(a, [&](std::size_t i) { return i == 59 ? before[59] : other[i + 1] - before[i + 1]; });
    // A single element broadcast to all, including itself.
    a = new_view();
    ops::evaluate(sub(b, ops::sliced(a, 0, 30, 1)), a);
    check(a, [&](std::size_t i) { return other[i] - before[30]; });
    // A square matrix and its transpose.
    a = new_view();
    const View matrix = ops::reshaped(ops::sliced(a, 0, 0, 49), {7, 7});
    ops::evaluate(sub(matrix, ops::permuted(matrix, {1, 0})), matrix);
    check(a, [&](std::size_t i) { return i >= 49 ? before[i] : before[i] - before[i % 7 * 7 + i / 7]; });
    // copy() as well.
    a = new_view();
    ops::copy(ops::sliced(a, 0, 0, 50), ops::sliced(a, 0, 10, 50));
    check(a, [&](std::size_t i) { return i < 10 ? before[i] : before[i - 10]; });
    a = new_view();
    ops::copy(ops::sliced(a, 0, 0, 30), ops::sliced(a, 0, 1, 30, 1));
    ops::copy(a, a);
    check(a, [&](std::size_t i) { return i == 0 || i > 30 ? before[i] : before[i - 1]; });
    a = new_view();
    ops::copy(ops::sliced(a, 0, 0, 30), ops::sliced(a, 0, 0, 30, 2));
    check(a, [&](std::size_t i) { return i % 2 == 0 ? before[i / 2] : before[i]; });
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

TEST_CASE("elementwise: expression trees run as one kernel") {
    const Tensor a = random_tensor({4, 1, 5}, 1), b = random_tensor({3, 1}, 2), c = random_tensor({4, 3, 5}, 3);
    // where(a < b, (a * b + 2) as is, exp(c)) - c
    const Expression x(a.view()), y(b.view()), z(c.view());
    const Scalar two[] = {2};
    const Expression product[] = {x, y}, less[] = {x, y}, of_exp[] = {z};
    const Expression plus[] = {Expression::apply(Function::mul, product)};
    const Expression choice[] = {Expression::apply(Function::less, less),
                                 Expression::apply(Function::add_scalar, plus, two),
                                 Expression::apply(Function::exp, of_exp)};
    const Expression parts[] = {Expression::apply(Function::where, choice), z};
    const Expression difference_of_parts = Expression::apply(Function::sub, parts);
    CHECK(difference_of_parts.shape() == Shape({4, 3, 5}));
    const auto va = values(a), vb = values(b), vc = values(c);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 60; ++i) {
        const double p = va[i / 15 * 5 + i % 5], q = vb[i / 5 % 3];
        expected.push_back((p < q ? p * q + 2 : std::exp(vc[i])) - vc[i]);
    }
    CHECK(difference(Tensor(ops::evaluate(difference_of_parts, device())), expected, tolerance(DType::f32, 4)) == "");
    // Constants are part of the kernel key: other constants must not reuse the first kernel.
    for (const double value : {3.0, 4.0}) {
        const Expression factors[] = {Expression::constant(value, DType::f32), x};
        std::vector<double> product_with;
        for (const double item : va) product_with.push_back(as_type(value * item, DType::f32));
        CHECK(difference(Tensor(ops::evaluate(Expression::apply(Function::mul, factors), device())), product_with,
                         {}) == "");
    }
    CHECK(values(Tensor(ops::evaluate(Expression::constant(7, DType::i64), device()))) == std::vector{7.0});
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

TEST_CASE("elementwise: an epilogue equals the same expression on a stored result") {
    const Tensor result = random_tensor({3, 4}, 1), bias = random_tensor({4}, 2);
    const auto before = values(result), added = values(bias);
    const Expression sum[] = {Expression::operator_result(DType::f32, {3, 4}), bias.view()};
    const Expression rectified[] = {Expression::apply(Function::add, sum)};
    const ops::Epilogue epilogue = ops::epilogue_of(Expression::apply(Function::relu, rectified));
    ops::apply_epilogue(epilogue, result.view());
    std::vector<double> expected;
    for (std::size_t i = 0; i < 12; ++i)
        expected.push_back(std::max(0.0, as_type(before[i] + added[i % 4], DType::f32)));
    CHECK(difference(result, expected, {}) == "");
    ops::apply_epilogue({}, result.view());
    CHECK(difference(result, expected, {}) == "");
    CHECK_THROWS_AS(ops::evaluate(ops::expression_of(epilogue), device()), ValueError);
}

TEST_CASE("elementwise: errors name the argument") {
    const View x = random_tensor({2, 3}, 1).view(), y = random_tensor({4}, 2).view(),
               integers = tensor({1, 2, 3}, {3}, DType::i32).view();
    const auto apply = [](Function function, std::vector<Expression> inputs, std::vector<double> parameters = {}) {
        return Expression::apply(function, inputs, scalars(parameters));
    };
    CHECK_THROWS_WITH_AS(apply(Function::add, {x, y}), "add: expected shapes that broadcast, got [2, 3] and [4]",
                         ShapeError);
    CHECK_THROWS_WITH_AS(apply(Function::add, {x, integers}),
                         "add: expected tensors of one type (convert with .to(DType)), got f32, i32", TypeError);
    CHECK_THROWS_WITH_AS(apply(Function::exp, {integers}),
                         "exp: expected f32, f64, f16 or bf16, got i32 (convert with .to(DType::f32))", TypeError);
    CHECK_THROWS_AS(apply(Function::neg, {Expression::cast(integers, DType::boolean)}), TypeError);
    CHECK_THROWS_AS(apply(Function::where, {x, x, x}), TypeError);
    CHECK_THROWS_WITH_AS(apply(Function::add, {x}), "add: expected 2 inputs and 0 parameters, got 1 and 0", ValueError);
    CHECK_THROWS_AS(apply(Function::clamp, {x}, {1}), ValueError);
    CHECK_THROWS_WITH_AS(apply(Function::mul_scalar, {integers}, {0.5}),
                         "mul_scalar: expected a whole number that fits into i32, got 0.5", ValueError);
    CHECK_THROWS_AS(apply(Function::add_scalar, {integers}, {3e9}), ValueError);
    CHECK_THROWS_AS(apply(Function::add_scalar, {integers}, {NAN}), ValueError);
    CHECK_THROWS_AS(Expression::constant(256, DType::u8), ValueError);
    CHECK_THROWS_AS(Expression::constant(-1, DType::u8), ValueError);
    CHECK_THROWS_AS(Expression::constant(0x1p63, DType::i64), ValueError);
    CHECK_NOTHROW(Expression::constant(-0x1p63, DType::i64));
    CHECK_THROWS_AS(ops::fill(integers, 2.5), ValueError);
    CHECK_THROWS_WITH_AS(ops::evaluate(Expression(x), integers), "evaluate: expected an output of type f32, got i32",
                         TypeError);
    CHECK_THROWS_AS(ops::evaluate(Expression(x), y), ShapeError);
    CHECK_THROWS_AS(ops::evaluate(Expression(y), ops::expanded("test", random_tensor({1}, 1).view(), {4})), ShapeError);
    CHECK_THROWS_AS(ops::copy(x, y), ShapeError);
    CHECK_THROWS_AS(ops::copy(integers, ops::sliced(y, 0, 0, 3)), TypeError);
    const Device other_device = fresh_device();
    const View other_view = View::make(other_device, DType::f32, {2, 3});
    CHECK_THROWS_AS(apply(Function::add, {x, other_view}), DeviceError);
    CHECK_THROWS_AS(ops::evaluate(Expression(x), other_view), DeviceError);
    CHECK_THROWS_AS(ops::copy(x, other_view), DeviceError);
    // Nine different inputs exceed the limit of a kernel.
    Expression sum(random_tensor({5}, 0).view());
    for (std::uint64_t i = 1; i < 9; ++i) sum = apply(Function::add, {sum, random_tensor({5}, i).view()});
    CHECK_THROWS_AS(ops::evaluate(sum, device()), Unsupported);
}
