// Products: integers, einsum, unread inputs, errors.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/functions/products.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("products: einsum, outer, kron and cross of small integers") {
    const Tensor a = tensor({1, 2, 3, 4}, {2, 2}), v = tensor({10, 1}, {2});
    CHECK(values(einsum("ij,j->i", a, v)) == Values{12, 34});
    CHECK(values(einsum("ij->ji", a)) == Values{1, 3, 2, 4});
    CHECK(values(einsum("ii", a)) == Values{5});  // the trace
    CHECK(values(outer(v, v)) == Values{100, 10, 10, 1});
    CHECK(values(kron(tensor({1, 2}, {1, 2}), tensor({1, 10}, {2, 1}))) == Values{1, 2, 10, 20});
    CHECK(values(cross(tensor({1, 0, 0}, {3}), tensor({0, 1, 0}, {3}))) == Values{0, 0, 1});
}

TEST_CASE("products: integers wrap modulo 2^bits") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8})
            for (const std::int64_t n : {1, 7, 16, 35}) {
                CAPTURE(name_of(dtype));
                CAPTURE(n);
                const Tensor a = (random_tensor({2, 3, 5}, 1) * 9.0).to(DType::i32).to(dtype);
                const Tensor b = transpose((random_tensor({2, n, 5}, 2) * 9.0).to(DType::i32).to(dtype));
                const Values as = values(a), bs = values(b);
                Values expected;
                for (std::size_t at = 0; at < 2; ++at)
                    for (std::size_t i = 0; i < 3; ++i)
                        for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
                            std::int64_t sum = 0;
                            for (std::size_t k = 0; k < 5; ++k)
                                sum += static_cast<std::int64_t>(as[(at * 3 + i) * 5 + k]) *
                                       static_cast<std::int64_t>(bs[(at * 5 + k) * static_cast<std::size_t>(n) + j]);
                            expected.push_back(dtype == DType::i8 ? static_cast<double>(static_cast<std::int8_t>(sum))
                                               : dtype == DType::u8
                                                   ? static_cast<double>(static_cast<std::uint8_t>(sum))
                                                   : static_cast<double>(sum));
                        }
                const Tensor got = matmul(a, b);
                CHECK(got.dtype() == dtype);
                CHECK(values(got) == expected);
                CHECK(values(bmm(a, b)) == expected);
            }
        CHECK(values(matmul(zeros({2, 0}, {DType::i32}), zeros({0, 2}, {DType::i32}))) == Values{0, 0, 0, 0});
        CHECK(values(linalg::matrix_power(tensor({1, 1, 1, 0}, {2, 2}, DType::i64), 10)) == Values{89, 55, 55, 34});
    }
}

TEST_CASE("products: einsum with many equations") {
    const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({3, 4}, 2), c = random_tensor({4, 2}, 3);
    const Tolerance near = tolerance(DType::f32, 30);
    CHECK(difference(einsum("ij,jk", {a, b}), values(matmul(a, b)), near) == "");
    CHECK(difference(einsum("ij,jk->ki", {a, b}), values(transpose(matmul(a, b))), near) == "");
    CHECK(difference(einsum("ij,jk,ki->", {a, b, c}), values(trace(matmul(matmul(a, b), c))), near) == "");
    CHECK(difference(einsum("ba", {a}), values(transpose(a)), {}) == "");
    CHECK(difference(einsum("aB", {a}), values(transpose(a)), {}) == "");  // B comes before a
    CHECK(difference(einsum("ij->", {a}), values(sum(a)), near) == "");
    CHECK(difference(einsum("i...->...", {a}), values(sum(a, {0})), near) == "");
    CHECK(difference(einsum("...,...", {a, slice(a, 0, 0, 1)}), values(a * slice(a, 0, 0, 1)), near) == "");
    CHECK(difference(einsum("ij,ij->i", {a, slice(a, 1, 0, 1)}), values(sum(a, {1}) * select(a, 1, 0)), near) == "");
    const Tensor square = random_tensor({3, 3}, 4);
    CHECK(difference(einsum("ii->i", {square}), values(diagonal(square)), {}) == "");
    CHECK(difference(einsum("ii", {square}), values(trace(square)), near) == "");
    CHECK_THROWS_WITH_AS(einsum("ij,jk", {a}), "einsum: expected 2 operands, got 1 in \"ij,jk\"", ValueError);
    CHECK_THROWS_WITH_AS(einsum("ij,jk", {a, a}), "einsum: expected one size for 'j', got 3 and 2 in \"ij,jk\"",
                         ShapeError);
    CHECK_THROWS_AS(einsum("i", {a}), ShapeError);
    CHECK_THROWS_WITH_AS(einsum("ij->ijj", {a}), "einsum: has 'j' twice in the result in \"ij->ijj\"", ValueError);
    CHECK_THROWS_WITH_AS(einsum("...->......", {a}), "einsum: expected \"...\" once per operand in \"...->......\"",
                         ValueError);
    CHECK_THROWS_AS(einsum("ij->ik", {a}), ValueError);
    CHECK_THROWS_AS(einsum("i.j", {a}), ValueError);
    CHECK_THROWS_AS(einsum("i1", {a}), ValueError);
    CHECK_THROWS_AS(einsum("ij->...", {a}), ValueError);
    CHECK_THROWS_AS(einsum("ii", {a}), ShapeError);
    CHECK_THROWS_AS(einsum("", {}), ValueError);
}

TEST_CASE("products: beta of 0 does not read the input; the cheapest order of a chain") {
    const double nan = std::nan("");
    const Tensor a = random_tensor({2, 3, 4}, 1), b = random_tensor({2, 4, 5}, 2);
    const Tensor with_nan = full({5}, nan);
    for (const Tensor& tensor : {baddbmm(with_nan, a, b, {.beta = 0}), addbmm(with_nan, a, b, {.beta = 0}),
                                 addmm(with_nan, select(a, 0, 0), select(b, 0, 0), {.beta = 0})})
        for (const double x : values(tensor)) CHECK(std::isfinite(x));
    CHECK(std::isnan(values(baddbmm(with_nan, a, b))[0]));
    CHECK_THROWS_AS(
        addmm(zeros({2}, {DType::i32}), zeros({2, 2}, {DType::i32}), zeros({2, 2}, {DType::i32}), {.alpha = 0.5}),
        TypeError);
    CHECK(chain_matmul({ones({3}), ones({3, 4}), ones({4})}).item<float>() == 12);
    CHECK(chain_matmul({ones({3, 2})}).shape() == Shape{3, 2});
    CHECK(values(vander(tensor({2, 3}, {2}), 3, true)) == Values{1, 2, 4, 1, 3, 9});
    CHECK(vander(tensor({2, 3}, {2}), 0).shape() == Shape{2, 0});
}

TEST_CASE("products: errors name the called function") {
    struct InvalidCall {
        std::string name;
        std::function<void()> call;
    };
    const Tensor rectangle = zeros({2, 3}), square = zeros({3, 3}), row = zeros({3}), batch = zeros({2, 3, 3});
    const std::vector<InvalidCall> mistakes{
        {"mm", [&] { (void)mm(rectangle, rectangle); }},
        {"bmm", [&] { (void)bmm(rectangle, square); }},
        {"bmm",
         [&] {
             (void)bmm(batch, zeros({3, 3, 3}));
         }},
        {"mv", [&] { (void)mv(rectangle, zeros({2})); }},
        {"dot", [&] { (void)dot(row, square); }},
        {"vdot", [&] { (void)vdot(row, zeros({2})); }},
        {"addmm", [&] { (void)addmm(zeros({2}), rectangle, square); }},
        {"addmm",
         [&] {
             (void)addmm(zeros({1, 1, 1}), rectangle, square);
         }},
        {"baddbmm", [&] { (void)baddbmm(row, rectangle, square); }},
        {"addbmm", [&] { (void)addbmm(zeros({4}), batch, batch); }},
        {"addmv", [&] { (void)addmv(row, rectangle, row); }},
        {"addr", [&] { (void)addr(row, rectangle, row); }},
        {"outer", [&] { (void)outer(rectangle, row); }},
        {"inner", [&] { (void)inner(rectangle, zeros({2})); }},
        {"tensordot", [&] { (void)tensordot(rectangle, square, 3); }},
        {"tensordot", [&] { (void)tensordot(rectangle, square, Dims{0}, Dims{0}); }},
        {"tensordot",
         [&] {
             (void)tensordot(rectangle, square, Dims{0, 0}, Dims{0, 1});
         }},
        {"kron",
         [&] {
             (void)kron(zeros({1, 1, 1, 1, 1}), row);
         }},
        {"trace", [&] { (void)trace(row); }},
        {"chain_matmul",
         [&] {
             (void)chain_matmul({rectangle, rectangle});
         }},
        {"chain_matmul", [&] { (void)chain_matmul({}); }},
        {"cross", [&] { (void)cross(rectangle, rectangle, 0); }},
        {"vecdot", [&] { (void)vecdot(rectangle, zeros({2})); }},
        {"vander", [&] { (void)vander(zeros({})); }},
    };
    for (const InvalidCall& mistake : mistakes) {
        std::string message = "nothing was thrown";
        try {
            mistake.call();
        } catch (const Error& error) {
            message = error.what();
        }
        CHECK_MESSAGE(message.starts_with(mistake.name + ": "), mistake.name << " says: " << message);
    }
}
