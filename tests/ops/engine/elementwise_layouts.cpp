// Elementwise functions of operands of all shapes and strides: broadcast, permuted, sliced, overlapping.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <doctest/doctest.h>
#include <ops/support/work_split.hpp>
#include <tests/ops/engine/elementwise_types.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Expression;
using ops::Function;
using ops::View;

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
