#include <reference/reduce_cases.hpp>
#include <tests/support/values.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>

#include "ops/support/work_split.hpp"
#include "tests/support/gradient_check.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Reduce;

namespace {

constexpr Reduce kKinds[] = {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min};

void check(const ReduceCase& test_case, Reduce kind, const Tensor& x, const std::vector<double>& elements,
           KernelStyle style) {
    const ops::KernelStyleScope scope(style);
    CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
    CAPTURE(test_case.name);
    CAPTURE(ops::name_of(kind));
    CAPTURE(name_of(x.dtype()));
    const auto expected = reference_reduce(kind, elements, test_case.shape, test_case.axes);
    CHECK(difference(Tensor(ops::reduce(kind, x.view(), test_case.axes, false)), expected,
                     test_case.tolerance(kind, x.dtype())) == "");
}

}  // namespace

TEST_CASE("reduce: sums, means and extremes of a 2 x 3 matrix along its axes") {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
    const auto reduced = [&](Reduce kind, const Dims& axes) {
        return values(Tensor(ops::reduce(kind, x.view(), axes, false)));
    };
    CHECK(reduced(Reduce::sum, {1}) == std::vector<double>{6, 15});
    CHECK(reduced(Reduce::sum, {0, 1}) == std::vector<double>{21});
    CHECK(reduced(Reduce::mean, {0}) == std::vector<double>{2.5, 3.5, 4.5});
    CHECK(reduced(Reduce::max, {0}) == std::vector<double>{4, 5, 6});
    CHECK(reduced(Reduce::min, {1}) == std::vector<double>{1, 4});
}

TEST_CASE("reduce: floats match the reference") {
    int number = 0;
    for (const ReduceCase& reduce_case : reduce_cases()) {
        ++number;
        if (reduce_case.large && small_cases()) continue;
        for (const DType dtype : floats()) {
            const Tensor x = reduce_case.input(dtype);
            const auto elements = values(x);
            // Each group size is a separate kernel on some drivers, so simt minima and means alternate.
            for (const Reduce kind : kKinds) {
                if (has_kernel_style(KernelStyle::simd)) check(reduce_case, kind, x, elements, KernelStyle::simd);
                if (kind == Reduce::sum || kind == Reduce::max || number % 5 == 0)
                    check(reduce_case, kind, x, elements, KernelStyle::simt);
            }
        }
    }
}

TEST_CASE("reduce: f16 and bf16 accumulate in f32 and are rounded once") {
    int number = 0;
    for (const ReduceCase& reduce_case : reduce_cases()) {
        if (reduce_case.large && (small_cases() || reduce_case.shape.numel() > 1'000'000)) continue;
        if (reduce_case.shape.numel() == 0 || (small_cases() && number++ % 6 != 0)) continue;
        const DType dtype = reduce_case.shape.numel() % 2 == 0 ? DType::f16 : DType::bf16;
        const Tensor x = reduce_case.input(dtype, 3, -1, 2);
        const auto elements = values(x);
        for (const KernelStyle style : kernel_styles())
            for (const Reduce kind : {Reduce::sum, Reduce::mean, Reduce::max}) {
                if (small_cases() && kind == Reduce::mean) continue;
                const ops::KernelStyleScope scope(style);
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                CAPTURE(reduce_case.name);
                CAPTURE(ops::name_of(kind));
                CAPTURE(name_of(dtype));
                Tolerance allowed = reduce_case.tolerance(kind, DType::f32);
                // Half an ulp.
                if (kind != Reduce::max)
                    allowed.relative += dtype == DType::f16 ? 0x1.01p-11 : 0x1.01p-8, allowed.absolute += 0x1p-25;
                const Tensor result(ops::reduce(kind, x.view(), reduce_case.axes, false));
                CHECK(result.dtype() == dtype);
                CHECK(difference(result, reference_reduce(kind, elements, reduce_case.shape, reduce_case.axes),
                                 allowed) == "");
            }
    }
    // Far more than f16 could count in steps of one, and a mean whose sum exceeds its range.
    CHECK(static_cast<float>(sum(ones({5000}, {DType::f16})).item<float16>()) == 5000);
    CHECK(static_cast<float>(mean(full({3000}, 60000, {DType::f16})).item<float16>()) == 60000);
    const ops::View x_bf16 = zeros({2, 3}, {DType::bf16}).view(), out_f32 = zeros({3}).view();
    CHECK_THROWS_WITH_AS(ops::reduce(Reduce::sum, x_bf16, {0}, out_f32),
                         "sum: expected an output of type bf16, got f32", TypeError);
}

TEST_CASE("reduce: integers are exact") {
    // Each type is a separate kernel, so a few shapes that cover all of its parts.
    const ReduceCase rows{.name = "rows", .shape = {5, 95}, .axes = {1}},
        columns{.name = "columns", .shape = {9, 5}, .axes = {0}};
    const ReduceCase many{.name = "many", .shape = {1'000'003}, .large = true};
    for (const ReduceCase& reduce_case : {rows, columns, many}) {
        if (reduce_case.large && small_cases()) continue;
        for (const DType dtype : {DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
            const bool is_signed = dtype != DType::u8 && dtype != DType::boolean;
            const Tensor x = reduce_case.input(dtype, 2, is_signed ? -120 : 0, dtype == DType::boolean ? 2 : 120);
            const auto elements = values(x);
            for (const Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
                if (has_kernel_style(KernelStyle::simd)) check(reduce_case, kind, x, elements, KernelStyle::simd);
                if (kind == Reduce::sum || dtype == DType::i32)
                    check(reduce_case, kind, x, elements, KernelStyle::simt);
            }
        }
    }
    const Tensor big = Tensor::from<std::int32_t>({2'000'000'000, 2'000'000'000, 2'000'000'000}, {3});
    CHECK(sum(big).item<std::int64_t>() == 6'000'000'000);
    CHECK(max(Tensor::from<std::int64_t>({-9'000'000'000'000'000'000, -9'000'000'000'000'000'001}, {2}))
              .item<std::int64_t>() == -9'000'000'000'000'000'000);
}

TEST_CASE("reduce: an output may be strided, and keep the reduced axes") {
    const Tensor x = random_tensor({6, 5, 20}, 3);
    const Tensor room = full({5, 12}, 7);
    ops::View out = ops::permuted(ops::sliced(room.view(), 1, 0, 6, 2), {1, 0});
    ops::reduce(Reduce::sum, x.view(), {2}, out);
    CHECK(difference(Tensor(out), reference_reduce(Reduce::sum, values(x), x.shape(), {2}), {1e-5, 0}) == "");
    CHECK(values(slice(room, 1, 1, 12, 2)) == std::vector<double>(30, 7));  // the elements between are unchanged
    CHECK(sum(x, {0, -1}, true).shape() == Shape({1, 5, 1}));
    CHECK(mean(x, {}, true).shape() == Shape({1, 1, 1}));
    CHECK(max(x, {1}).shape() == Shape({6, 20}));
    CHECK(sum(expand(random_tensor({1, 20}, 4), {6, 20}), {0}).shape() == Shape({20}));
}

TEST_CASE("reduce: a broadcast axis is reduced as if materialised") {
    const Tensor row = random_tensor({1, 20}, 4);
    for (const Dims& axes : {Dims{0}, Dims{1}, Dims{}})
        for (const Reduce kind : kKinds) {
            const Tensor x = expand(row, {6, 20});
            CHECK(difference(Tensor(ops::reduce(kind, x.view(), axes, false)),
                             reference_reduce(kind, values(x), x.shape(), axes), {1e-5, 0}) == "");
        }
    CHECK(sum(expand(full({1}, 2), {70})).item<float>() == 140);
}

TEST_CASE("reduce: sums of many f32 lose little precision") {
    if (small_cases()) return;
    const std::int64_t n = 1 << 24;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CHECK(sum(ones({n})).item<float>() == 0x1p24f);
        CHECK(sum(full({n}, 0.1)).item<float>() == doctest::Approx(0x1p24 * double{0.1f}).epsilon(1e-6));
        CHECK(mean(full({n / 4, 4}, 0.1), {0}).to_vector<float>()[3] == doctest::Approx(0.1).epsilon(1e-6));
        CHECK(mean(full({4, n / 4}, 0.1), {1}).to_vector<float>()[3] == doctest::Approx(0.1).epsilon(1e-6));
    }
}

TEST_CASE("reduce: the same sum has the same bits every time") {
    const Tensor x = random_tensor({small_cases() ? 300 : 300'000, 3}, 5);
    const auto first = sum(x, {0}).to_vector<float>();
    for (int i = 0; i < 3; ++i) CHECK(sum(x, {0}).to_vector<float>() == first);
}

TEST_CASE("reduce: NaN and infinities are propagated") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const std::int64_t n :
             small_cases() ? std::vector<std::int64_t>{50} : std::vector<std::int64_t>{3, 50, 200}) {
            for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
                if (small_cases() && at != n / 2) continue;
                auto elements = random_values(n, 6);
                elements[static_cast<std::size_t>(at)] = NAN;
                for (const Shape& shape : {Shape{1, n}, Shape{n, 1}}) {
                    for (const Reduce kind : kKinds) {
                        const Tensor x = concat({tensor(elements, {n, 1}), random_tensor({n, 17}, 7)}, 1);
                        CHECK(std::isnan(values(Tensor(ops::reduce(kind, x.view(), {0}, false)))[0]));
                        CHECK(std::isnan(
                            values(Tensor(ops::reduce(kind, tensor(elements, shape).view(), {}, false)))[0]));
                    }
                }
            }
        }
        CHECK(max(Tensor::from<float>({-INFINITY, -INFINITY}, {2})).item<float>() == -INFINITY);
        CHECK(min(Tensor::from<float>({INFINITY, INFINITY}, {2})).item<float>() == INFINITY);
        CHECK(std::isnan(sum(Tensor::from<float>({INFINITY, -INFINITY}, {2})).item<float>()));
        CHECK(sum(Tensor::from<float>({INFINITY, 1}, {2})).item<float>() == INFINITY);
    }
}

TEST_CASE("reduce: empty inputs") {
    const Tensor none = zeros({3, 0});
    CHECK(values(sum(none, {1})) == std::vector<double>{0, 0, 0});
    CHECK(std::isnan(mean(none).item<float>()));
    CHECK(sum(none, {0}).shape() == Shape({0}));
    CHECK(max(none, {0}).shape() == Shape({0}));
    CHECK(sum(zeros({0}, {.dtype = DType::i32})).item<std::int64_t>() == 0);
    CHECK_THROWS_WITH_AS(max(none, {1}), "max: expected at least one element to choose from, got [3, 0] over axes [1]",
                         ShapeError);
    CHECK_THROWS_AS(min(none), ShapeError);
}

TEST_CASE("reduce: gradients") {
    if (widest() != DType::f64) return;
    for (const ReduceCase& reduce_case : reduce_cases()) {
        if (reduce_case.large || reduce_case.shape.numel() == 0 || (small_cases() && reduce_case.shape.numel() > 50))
            continue;
        CAPTURE(reduce_case.name);
        const Tensor x = reduce_case.input(DType::f64, 8);
        CHECK(gradient_difference([&](const auto& in) { return sum(in[0], reduce_case.axes); }, {x}) == "");
        CHECK(gradient_difference([&](const auto& in) { return mean(in[0], reduce_case.axes, true); }, {x}) == "");
        CHECK(gradient_difference([&](const auto& in) { return max(in[0], reduce_case.axes); }, {x}) == "");
        CHECK(gradient_difference([&](const auto& in) { return min(in[0], reduce_case.axes, true); }, {x}) == "");
    }
}

TEST_CASE("argmax: matches the reference") {
    for (const ArgmaxCase& argmax_case : argmax_cases()) {
        if (argmax_case.large && small_cases()) continue;
        for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8, DType::boolean,
                                  DType::f16, DType::bf16}) {
            if (dtype == DType::f64 && widest() != DType::f64) continue;
            if (!is_floating(dtype) && argmax_case.shape.rank() != 2) continue;  // each type is a separate kernel
            if (is_16bit_float(dtype) && (argmax_case.shape.numel() > 10000 || argmax_case.shape.rank() != 2))
                continue;  // f16 and bf16 are cast first
            const Tensor x = random_tensor(argmax_case.shape, 9, dtype, is_floating(dtype) ? -1 : 0,
                                           is_floating(dtype)        ? 1
                                           : dtype == DType::boolean ? 2
                                                                     : 120);
            const auto expected = reference_argmax(values(x), argmax_case.shape, argmax_case.axis);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CAPTURE(argmax_case.shape.str());
                CAPTURE(name_of(dtype));
                CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                CHECK(values(argmax(x, argmax_case.axis)) == expected);
            }
        }
    }
}

TEST_CASE("argmax: ties, NaN, shapes") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const std::int64_t n : {5, 70, 1500}) {
            auto elements = std::vector<double>(static_cast<std::size_t>(n), 1);
            CHECK(argmax(tensor(elements, {n})).item<std::int64_t>() == 0);
            CHECK(argmax(tensor(elements, {n, 1}), 0).item<std::int64_t>() == 0);
            elements[static_cast<std::size_t>(n - 2)] = elements[static_cast<std::size_t>(n - 1)] = 2;
            CHECK(argmax(tensor(elements, {n})).item<std::int64_t>() == n - 2);
            elements[static_cast<std::size_t>(n / 2)] = elements[static_cast<std::size_t>(n / 2 + 1)] = NAN;
            CHECK(argmax(tensor(elements, {n})).item<std::int64_t>() == n / 2);
            CHECK(argmax(expand(tensor(elements, {n, 1}), {n, 3}), 0).to_vector<std::int64_t>() ==
                  std::vector<std::int64_t>(3, n / 2));
        }
        CHECK(argmax(Tensor::from<float>({-INFINITY, -INFINITY}, {2})).item<std::int64_t>() == 0);
        const Tensor x = Tensor::from<float>({1, 5, 2, 9, 4, 3}, {2, 3});
        CHECK(argmax(transpose(x), 0).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
        CHECK(argmax(x, 0, true).shape() == Shape({1, 3}));
        CHECK(argmax(x, -1).shape() == Shape({2}));
    }
    CHECK(argmax(zeros({0, 3}), 1).shape() == Shape({0}));
    CHECK_THROWS_WITH_AS(argmax(zeros({3, 0}), 1),
                         "argmax: expected at least one element to choose from, got [3, 0] along axis 1", ShapeError);
    CHECK_THROWS_WITH_AS(argmax(zeros({3}), 1), "argmax: expected an axis in [-1, 0], got 1", ShapeError);
    // A scalar counts as one element.
    CHECK(argmax(zeros({})).item<std::int64_t>() == 0);
    CHECK_THROWS_WITH_AS(argmax(zeros({}), 1), "argmax: expected an axis in [-1, 0], got 1", ShapeError);
}

TEST_CASE("reduce: equal maxima share the gradient") {
    Tensor x = Tensor::from<float>({3, 1, 3, 3, 2, 5}, {2, 3}).set_requires_grad();
    max(x, {1}).backward(Tensor::from<float>({6, 10}, {2}));
    CHECK(x.grad().to_vector<float>() == std::vector<float>{3, 0, 3, 0, 0, 10});
    x.zero_grad();
    min(x).backward();
    CHECK(x.grad().to_vector<float>() == std::vector<float>{0, 1, 0, 0, 0, 0});
}

TEST_CASE("sum: second derivatives") {
    if (widest() != DType::f64) return;
    Tensor x = Tensor::from<double>({1, 2, 3}, {3}).set_requires_grad();
    const Tensor first = grad({sum(x * x * x)}, {x}, {.create_graph = true})[0];
    CHECK(difference(grad({mean(first)}, {x})[0], {2, 4, 6}, {1e-12, 0}) == "");
}

TEST_CASE("reduce: error messages") {
    const Tensor x = zeros({2, 3});
    CHECK_THROWS_WITH_AS(sum(x, {2}), "sum: expected an axis in [-2, 1], got 2", ShapeError);
    CHECK_THROWS_WITH_AS(sum(x, {1, -1}), "sum: expected each axis once, got [1, -1] for 2 axes", ShapeError);
    CHECK(sum(full({}, 3), {-1}).item<float>() == 3);
    CHECK_THROWS_WITH_AS(sum(zeros({}), {1}), "sum: expected an axis in [-1, 0], got 1", ShapeError);
    CHECK_THROWS_WITH_AS(mean(x.to(DType::i32)),
                         "mean: expected f32, f64, f16 or bf16 (convert with .to(DType)), got i32", TypeError);
    CHECK_THROWS_WITH_AS(max(Tensor()), "max: expected a tensor, got an undefined one", ValueError);
    CHECK_THROWS_WITH_AS(ops::reduce(Reduce::sum, x.view(), {0}, zeros({2}).view()),
                         "sum: expected an output of shape [3], got [2]", ShapeError);
    CHECK_THROWS_WITH_AS(ops::reduce(Reduce::sum, x.view(), {0}, zeros({3}, {.dtype = DType::bf16}).view()),
                         "sum: expected an output of type f32, got bf16", TypeError);
}
