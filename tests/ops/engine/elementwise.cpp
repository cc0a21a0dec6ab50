// Every function of the table compared with plain C++, in all types; trees of functions, epilogues, errors.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <reference/elementwise_cases.hpp>
#include <tests/ops/engine/elementwise_types.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Domain;
using ops::Expression;
using ops::Function;
using ops::View;

namespace {

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
