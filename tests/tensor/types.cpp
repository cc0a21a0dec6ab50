// no-oclgrind: its kernels are those of tests/ops/engine/elementwise.cpp and elementwise_copies.cpp
// Type promotion, numbers that keep their value, and functions of integers and bools.
#include <cstdint>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Integers = std::vector<std::int64_t>;
using Values = std::vector<double>;

bool available(DType dtype) { return dtype != DType::f64 || device().info().fp64; }

}  // namespace

TEST_CASE("types: promotion as documented by PyTorch") {
    // Rows and columns: u8 i8 i16 i32 i64 f16 bf16 f32 f64 bool (torch.promote_types).
    const std::vector<DType> types{DType::u8,  DType::i8,   DType::i16, DType::i32, DType::i64,
                                   DType::f16, DType::bf16, DType::f32, DType::f64, DType::boolean};
    const char* const rows[] = {
        "u8 i16 i16 i32 i64 f16 bf16 f32 f64 u8",         "i16 i8 i16 i32 i64 f16 bf16 f32 f64 i8",
        "i16 i16 i16 i32 i64 f16 bf16 f32 f64 i16",       "i32 i32 i32 i32 i64 f16 bf16 f32 f64 i32",
        "i64 i64 i64 i64 i64 f16 bf16 f32 f64 i64",       "f16 f16 f16 f16 f16 f16 f32 f32 f64 f16",
        "bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 bf16", "f32 f32 f32 f32 f32 f32 f32 f32 f64 f32",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64",        "u8 i8 i16 i32 i64 f16 bf16 f32 f64 bool"};
    for (std::size_t i = 0; i < types.size(); ++i) {
        std::istringstream row(rows[i]);
        for (const DType other : types) {
            std::string expected;
            row >> expected;
            CHECK_MESSAGE(name_of(promote_types(types[i], other)) == expected, name_of(types[i]), " and ",
                          name_of(other));
        }
    }
    // PyTorch supports these only with floating types.
    CHECK(promote_types(DType::u16, DType::i16) == DType::i32);
    CHECK(promote_types(DType::i8, DType::u16) == DType::i32);
    CHECK(promote_types(DType::u32, DType::i32) == DType::i64);
    CHECK(promote_types(DType::u16, DType::i64) == DType::i64);
    CHECK(promote_types(DType::u8, DType::u64) == DType::u64);
    CHECK(promote_types(DType::u64, DType::boolean) == DType::u64);
    CHECK(promote_types(DType::u64, DType::bf16) == DType::bf16);
    CHECK(error_message<Error>([] { return promote_types(DType::u64, DType::i8); }) ==
          "promote_types: expected an integer type that holds both, got u64 and i8");
}

TEST_CASE("types: tensors with axes, 0-d tensors, and numbers") {
    const auto of_dtype = [](DType dtype, const Shape& shape = {2}) { return ones(shape, {dtype}); };
    CHECK(result_type(of_dtype(DType::i32), 2.5) == DType::f32);
    CHECK(result_type(of_dtype(DType::f16), 2.5) == DType::f16);
    CHECK(result_type(of_dtype(DType::u8), 1000) == DType::u8);
    CHECK(result_type(of_dtype(DType::boolean), 1) == DType::i64);
    CHECK(result_type(of_dtype(DType::boolean), true) == DType::boolean);
    CHECK(result_type(of_dtype(DType::i8), of_dtype(DType::i64, {})) == DType::i8);
    CHECK(result_type(of_dtype(DType::i8), of_dtype(DType::f16, {})) == DType::f16);
    CHECK(result_type(of_dtype(DType::i8, {}), of_dtype(DType::i64, {})) == DType::i64);
    CHECK(result_type(of_dtype(DType::boolean), of_dtype(DType::u8, {})) == DType::u8);
    CHECK(result_type(of_dtype(DType::i16, {}), 3) == DType::i16);
    CHECK(result_type(2, 2.5) == DType::f32);
    if (available(DType::f64)) {
        CHECK(result_type(of_dtype(DType::f32), of_dtype(DType::f64, {})) == DType::f32);
        CHECK(result_type(of_dtype(DType::i32), of_dtype(DType::f64, {})) == DType::f64);
    }
}

TEST_CASE("types: functions of several types compute in their promoted type") {
    const Tensor small = tensor({1, 2, 3}, {3}, DType::u8), ints = tensor({-300, 7, 40000}, {3}, DType::i32),
                 real = tensor({0.5, -1.5, 2}, {3});
    const Tensor sums = small + ints;
    CHECK(sums.dtype() == DType::i32);
    CHECK(values(sums) == Values{-299, 9, 40003});
    CHECK((ints * real).dtype() == DType::f32);
    CHECK(values(ints * real) == Values{-150, -10.5, 80000});
    CHECK((small < real).dtype() == DType::boolean);
    CHECK(values(small < real) == Values{0, 0, 0});
    CHECK(values(small > real) == Values{1, 1, 1});
    CHECK(values(small / ints)[2] == doctest::Approx(3 / 40000.0));
    CHECK((small / ints).dtype() == DType::f32);
    CHECK((small / 2).dtype() == DType::f32);
    CHECK(values(small / 2) == Values{0.5, 1, 1.5});
    CHECK(values(sqrt(tensor({4, 9}, {2}, DType::i16))) == Values{2, 3});
    CHECK(where(small > 1, small, 0.5).dtype() == DType::f32);
    CHECK(values(where(small > 1, small, 0.5)) == Values{0.5, 2, 3});
    CHECK(concat({small, ints, real}, 0).dtype() == DType::f32);
    CHECK(values(concat({small, ints}, 0)) == Values{1, 2, 3, -300, 7, 40000});
    CHECK(error_message<Error>([&] { return tensor({1}, {1}, DType::u64) + small.to(DType::i8); }) ==
          "operator+: expected types with a common type, got u64, i8 (convert with .to(DType))");
    CHECK(error_message<Error>([&] { return real & real; }) == "operator&: expected integers or bool, got f32, f32");
}

TEST_CASE("types: integers are compared with numbers out of the range of their type") {
    for (const DType dtype :
         {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
        CAPTURE(name_of(dtype));
        const Tensor x = transpose(tensor({0, 1, 7, 100, 127, 3}, {2, 3}, dtype), 0, 1);
        const bool is_signed = dtype_info(dtype).is_signed;
        const Scalar below = is_signed && dtype != DType::i64 ? Scalar(INT64_C(-5'000'000'000)) : Scalar(-1),
                     above = dtype == DType::u64 ? Scalar(127) : Scalar(UINT64_C(0xffff'ffff'ffff'ffff));
        const Values none(6, 0), all(6, 1);
        if (dtype != DType::i64) {
            CHECK(values(x > below) == all);
            CHECK(values(x >= below) == all);
            CHECK(values(below < x) == all);
            CHECK(values(x != below) == all);
            CHECK(values(x < below) == none);
            CHECK(values(x <= below) == none);
            CHECK(values(below >= x) == none);
            CHECK(values(x == below) == none);
            CHECK((x == below).shape() == Shape{3, 2});
            CHECK((x == below).dtype() == DType::boolean);
            CHECK(values(clamp(x, below, 7)) == values(clamp(x, 0, 7)));
            CHECK(clamp(x, below, 7).dtype() == dtype);
            CHECK_THROWS_AS((void)clamp_max(x, below), ValueError);
        }
        if (dtype != DType::u64) {
            CHECK(values(x < above) == all);
            CHECK(values(x <= above) == all);
            CHECK(values(above > x) == all);
            CHECK(values(x != above) == all);
            CHECK(values(x > above) == none);
            CHECK(values(x >= above) == none);
            CHECK(values(above <= x) == none);
            CHECK(values(above == x) == none);
            CHECK(values(clamp(x, 3, above)) == values(clamp_min(x, 3)));
            CHECK(values(clamp_max(x, above)) == values(x));
            CHECK_THROWS_AS((void)clamp_min(x, above), ValueError);
        }
        CHECK(values(x < 100) == values(x.to(DType::f32) < 100));
    }
    CHECK(values(tensor({1, 2}, {2}, DType::i8) < 300) == Values{1, 1});
    CHECK(values(tensor({-1, 44}, {2}, DType::i8) == 300) == Values{0, 0});
}

TEST_CASE("types: gradients have the type of their tensor") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        Tensor reduced = tensor({0.5, 2, -1}, {3}, dtype), full_precision = tensor({3, -0.25, 4}, {3});
        reduced.set_requires_grad();
        full_precision.set_requires_grad();
        const Tensor product = reduced * full_precision + tensor({1, 2, 3}, {3}, DType::i32);
        CHECK(product.dtype() == DType::f32);
        sum(product * 2).backward();
        CHECK(reduced.grad().dtype() == dtype);
        CHECK(values(reduced.grad()) == Values{6, -0.5, 8});
        CHECK(full_precision.grad().dtype() == DType::f32);
        CHECK(values(full_precision.grad()) == Values{1, 4, -2});
    }
    Tensor x = tensor({-1, 0.25, 3}, {3}).set_requires_grad();
    sum(where(x > 0, x, 0.5) * maximum(x, 2)).backward();
    CHECK(values(x.grad()) == Values{0, 2, 6});
}

TEST_CASE("types: numbers keep their value") {
    constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    const Tensor x = full({3}, large, {DType::i64});
    CHECK(x.to_vector<std::int64_t>() == Integers(3, large));
    CHECK((x + large).to_vector<std::int64_t>() == Integers(3, 2 * large));
    CHECK((x - large).to_vector<std::int64_t>() == Integers(3, 0));
    CHECK((x * large).to_vector<std::int64_t>() ==
          Integers(3, static_cast<std::int64_t>(std::uint64_t{large} * std::uint64_t{large})));
    CHECK(values(x == large) == Values{1, 1, 1});
    CHECK(values(x == large - 1) == Values{0, 0, 0});
    CHECK(values(equal(large - 1, x)) == Values{0, 0, 0});
    CHECK(maximum(x, large + 2).to_vector<std::int64_t>() == Integers(3, large + 2));
    CHECK(clamp(x, large + 2, large + 4).to_vector<std::int64_t>() == Integers(3, large + 2));
    CHECK(where(x == large, large + 4, x).to_vector<std::int64_t>() == Integers(3, large + 4));
    CHECK(pad(x, {1}, {0}, large + 6).to_vector<std::int64_t>()[0] == large + 6);
    CHECK(arange(large, large + 6, 2, {DType::i64}).to_vector<std::int64_t>() == Integers{large, large + 2, large + 4});
    CHECK(arange(large + 3, large, -1, {DType::i64}).to_vector<std::int64_t>() ==
          Integers{large + 3, large + 2, large + 1});
    Tensor written = zeros({2}, {DType::u64});
    written.fill_(largest);
    CHECK(written.to_vector<std::uint64_t>() == std::vector<std::uint64_t>(2, largest));
    written -= 1;
    CHECK(written.to_vector<std::uint64_t>() == std::vector<std::uint64_t>(2, largest - 1));
    CHECK((written - (largest - 5)).to_vector<std::uint64_t>() == std::vector<std::uint64_t>(2, 4));
    CHECK(values(written > std::uint64_t{1} << 63) == Values{1, 1});
    CHECK(sum(written).dtype() == DType::u64);
    CHECK(Scalar(largest).str() == "18446744073709551615");
    CHECK(Scalar(-7).str() == "-7");
    CHECK(Scalar(true).str() == "True");
    CHECK(Scalar(0.25).str() == "0.25");
    CHECK_UNARY(Scalar(largest).fits(DType::u64));
    CHECK_FALSE(Scalar(largest).fits(DType::i64));
    CHECK_FALSE(Scalar(-1).fits(DType::u64));
    CHECK_UNARY(Scalar(-128).fits(DType::i8));
    CHECK_FALSE(Scalar(128.0).fits(DType::i8));
    CHECK_FALSE(Scalar(1.5).fits(DType::i32));
    CHECK_UNARY(Scalar(1.5).fits(DType::bf16));
    CHECK((-Scalar(3)).to<int>() == -3);
    CHECK((-Scalar(2.5)).to_double() == -2.5);
}

TEST_CASE("types: integer division, powers and wrapping") {
    const Values dividends{7, -7, 7, -7, 0, 5, 100, -128, 127}, divisors{2, 2, -2, -2, 3, 0, -7, -1, 127};
    const auto count = static_cast<std::int64_t>(dividends.size());
    for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
        CAPTURE(name_of(dtype));
        const Tensor a = tensor(dividends, {count}, dtype), b = tensor(divisors, {count}, dtype);
        CHECK(values(floor_divide(a, b)) == Values{3, -4, -4, 3, 0, 0, -15, dtype == DType::i8 ? -128.0 : 128.0, 1});
        CHECK(values(a % b) == Values{1, 1, -1, -1, 0, 0, -5, 0, 0});
        CHECK(values(fmod(a, b)) == Values{1, -1, 1, -1, 0, 0, 2, 0, 0});
        CHECK(values(floor_divide(a, 4)) == Values{1, -2, 1, -2, 0, 1, 25, -32, 31});
        CHECK(values(7 % tensor({2, -4, 5}, {3}, dtype)) == Values{1, -1, 2});
    }
    for (const DType dtype : {DType::u8, DType::u16, DType::u32, DType::u64}) {
        CAPTURE(name_of(dtype));
        const Tensor a = tensor({7, 250, 0, 9}, {4}, dtype), b = tensor({2, 16, 5, 0}, {4}, dtype);
        CHECK(values(floor_divide(a, b)) == Values{3, 15, 0, 0});
        CHECK(values(a % b) == Values{1, 10, 0, 0});
        CHECK(values(a - 1)[2] == as_type(-1, dtype));
    }
    // The minimum, whose negation overflows.
    const std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
    const Tensor extreme = full({1}, smallest, {DType::i64}), minus = full({1}, -1, {DType::i64});
    CHECK(floor_divide(extreme, minus).to_vector<std::int64_t>() == Integers{smallest});
    CHECK((extreme % minus).to_vector<std::int64_t>() == Integers{0});
    // Powers, modulo 2^bits.
    const Tensor base = tensor({3, -2, 1, -1, -1, 0, 5, 0}, {8}, DType::i64),
                 exponent = tensor({39, 63, -4, -3, -2, 0, -1, 7}, {8}, DType::i64);
    CHECK(pow(base, exponent).to_vector<std::int64_t>() == Integers{4052555153018976267, smallest, 1, -1, 1, 1, 0, 0});
    CHECK(values(pow(tensor({2, 3, 7}, {3}, DType::u8), 3)) == Values{8, 27, 343 - 256});
    CHECK(pow(base, 2).dtype() == DType::i64);
    CHECK(pow(base, 0.5).dtype() == DType::f32);
    CHECK(values(pow(tensor({2, 3}, {2}, DType::i32), 2.0)) == Values{4, 9});
}

TEST_CASE("types: floating division and remainder as in Python") {
    const Values dividends{7.5, -7.5, 7.5, -7.5, 1, -1, 0}, divisors{2, 2, -2, -2, INFINITY, INFINITY, 3};
    const Tensor a = tensor(dividends, {7}), b = tensor(divisors, {7});
    CHECK(values(floor_divide(a, b)) == Values{3, -4, -4, 3, 0, -1, 0});
    CHECK(values(a % b) == Values{1.5, 0.5, -0.5, -1.5, 1, INFINITY, 0});
    CHECK(values(fmod(a, b)) == Values{1.5, -1.5, 1.5, -1.5, 1, -1, 0});
}

TEST_CASE("types: bitwise operations on integers, logical ones on bools") {
    const std::vector<std::int64_t> first{0b1100, -1, 5, 0}, second{0b1010, 77, -5, 0};
    for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
        const Tensor a = Tensor::from(first, {4}).to(dtype), b = Tensor::from(second, {4}).to(dtype);
        CHECK(values(a & b) == Values{0b1000, 77, 5 & -5, 0});
        CHECK(values(a | b) == Values{0b1110, -1, 5 | -5, 0});
        CHECK(values(a ^ b) == Values{0b0110, -1 ^ 77, 5 ^ -5, 0});
        CHECK(values(~a) == Values{~0b1100, 0, ~5, -1});
        CHECK(values(a & 4) == Values{4, 4, 4, 0});
        CHECK((!a).dtype() == DType::boolean);
        CHECK(values(!a) == Values{0, 0, 0, 1});
        CHECK(values(logical_and(a, b)) == Values{1, 1, 1, 0});
    }
    const Tensor mask = tensor({1, 1, 0, 0}, {4}, DType::boolean), other = tensor({1, 0, 1, 0}, {4}, DType::boolean);
    CHECK(values(mask & other) == Values{1, 0, 0, 0});
    CHECK(values(mask | other) == Values{1, 1, 1, 0});
    CHECK(values(mask ^ other) == Values{0, 1, 1, 0});
    CHECK(values(~mask) == Values{0, 0, 1, 1});
    // Sums and products of bools are "or" and "and", as in PyTorch; consumers see 0 and 1.
    CHECK((mask + other).dtype() == DType::boolean);
    CHECK(values((mask + other).to(DType::f32) * 3) == Values{3, 3, 3, 0});
    CHECK(values(mask * other) == Values{1, 0, 0, 0});
    CHECK(values(maximum(mask, other)) == Values{1, 1, 1, 0});
    CHECK(values(mask + 1) == Values{2, 2, 1, 1});
    CHECK(values(mask * random_tensor({4}, 1))[2] == 0);
    CHECK(values(logical_xor(tensor({0.5, 0, -0.0, NAN}, {4}), 1)) == Values{0, 1, 1, 0});
    CHECK(error_message<Error>([&] { return mask - other; }) == "operator-: expected numbers, got bool, bool");
    CHECK(values(sum(mask)) == Values{2});
}

TEST_CASE("types: in-place operations keep the type") {
    Tensor x = tensor({1, 2, 3}, {3}, DType::i32);
    x += 2;
    x *= tensor({2, 3, 4}, {3}, DType::u8);
    x -= tensor({1}, {1}, DType::i64);
    CHECK(x.dtype() == DType::i32);
    CHECK(values(x) == Values{5, 11, 19});
    CHECK(error_message<Error>([&] { return x += 0.5; }) ==
          "add_: expected a result that fits the tensor's type, i32, got one of f32");
    CHECK(error_message<Error>([&] { return x /= 2; }).starts_with("div_: expected"));
    CHECK(values(x) == Values{5, 11, 19});
    Tensor real = tensor({1, 2, 3}, {3});
    real /= 2;
    real += tensor({1, 2, 3}, {3}, DType::i8);
    real *= 2.0;
    CHECK(values(real) == Values{3, 6, 9});
    Tensor leaf = tensor({1, 2, 3}, {3}).set_requires_grad();
    Tensor through = leaf * 3;
    through += 1;
    through *= tensor({2, 0, 1}, {3}, DType::i64);
    sum(through).backward();
    CHECK(values(leaf.grad()) == Values{6, 0, 3});
}

TEST_CASE("types: every type is filled, counted, summed, sliced, concatenated, sorted and printed") {
    for (const DType dtype : kDTypes) {
        if (!available(dtype)) continue;
        CAPTURE(name_of(dtype));
        const bool is_bool = dtype == DType::boolean;
        const Tensor x =
            is_bool ? tensor({1, 0, 1, 1, 0, 1}, {2, 3}, dtype) : tensor({3, 1, 2, 6, 4, 5}, {2, 3}, dtype);
        const Values in = values(x);
        CHECK(values(sum(x)) == Values{is_bool ? 4.0 : 21.0});
        CHECK(values(sum(x, 1)) == (is_bool ? Values{2, 2} : Values{6, 15}));
        CHECK(sum(x).dtype() == (is_floating(dtype) || dtype == DType::u64 ? dtype : DType::i64));
        CHECK(values(max(x, {0})) == (is_bool ? Values{1, 0, 1} : Values{6, 4, 5}));
        CHECK(values(min(x, {1})) == (is_bool ? Values{0, 0} : Values{1, 4}));
        CHECK(max(x).dtype() == dtype);
        CHECK(values(argmax(x, 1)) == Values{0, 0});
        CHECK(values(permute(x, {1, 0})) == Values{in[0], in[3], in[1], in[4], in[2], in[5]});
        CHECK(values(concat({slice(x, 1, 1, 3), x}, 1)) ==
              Values{in[1], in[2], in[0], in[1], in[2], in[4], in[5], in[3], in[4], in[5]});
        CHECK(values(where(x > zeros({1}, {dtype}), x, ones({1}, {dtype}))).size() == 6);
        CHECK(values(x == x) == Values(6, 1));
        CHECK(x.str().find(fmt::format("Tensor({}, [2, 3]", name_of(dtype))) == 0);
        if (!is_bool) CHECK(values(topk(x.to(compute_type(dtype)), 2).values) == Values{3, 2, 6, 5});
        if (!is_bool) CHECK(values(arange(0, 5, 2, {dtype})) == Values{0, 2, 4});
        std::ostringstream out;
        out << x.shape() << ' ' << dtype;
        CHECK(out.str() == fmt::format("[2, 3] {}", name_of(dtype)));
    }
    const std::vector<std::int64_t> sizes{2, 3};
    CHECK(zeros(sizes).shape() == Shape({2, 3}));
    CHECK(zeros(4).shape() == Shape({4}));
}
