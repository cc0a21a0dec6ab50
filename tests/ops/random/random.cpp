// Random numbers on the device compared with Philox on the host, their distributions, and dropout.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"
#include "ops/random/random.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Expression;
using ops::Function;
using ops::RandomCall;
using ops::View;

namespace {

/// A view inside a buffer of NaN, which detects writes outside of the view.
struct Guarded {
    View guarded, out;
    Guarded(std::int64_t size, DType dtype) : guarded(View::make(device(), dtype, {size + 20})) {
        ops::fill(guarded, NAN);
        out = ops::sliced(guarded, 0, 10, size);
    }
    [[nodiscard]] std::vector<double> content() const {
        const auto all = values(Tensor(guarded));
        const auto nan = [](double x) { return std::isnan(x); };
        CHECK(std::all_of(all.begin(), all.begin() + 10, nan));
        CHECK(std::all_of(all.end() - 10, all.end(), nan));
        return {all.begin() + 10, all.end() - 10};
    }
};

/// The words of block number `block` of a call.
std::array<std::uint32_t, 4> philox_words(std::uint64_t seed, std::uint64_t block) {
    return philox4x32_10({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                         {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// Uniform number `i` of a call at `offset`.
double uniform(DType dtype, std::uint64_t seed, std::uint64_t offset, std::uint64_t i) {
    if (dtype == DType::f32) return unit_uniform(philox_words(seed, offset + i / 4)[i % 4]);
    const auto w = philox_words(seed, offset + i / 2);
    const std::uint64_t bits = std::uint64_t{w[i % 2 * 2 + 1]} << 32 | w[i % 2 * 2];
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Restores the generator of `device` after a test.
struct Position {
    ops::RandomPosition before = ops::random_position(device());
    Position(std::uint64_t seed, std::uint64_t offset) { ops::set_random_position(device(), {seed, offset}); }
    ~Position() { ops::set_random_position(device(), before); }
    Position(const Position&) = delete;
    Position& operator=(const Position&) = delete;
};

std::vector<std::int64_t> sizes() {
    return small_cases() ? std::vector<std::int64_t>{1, 2, 3, 5, 33}
                         : std::vector<std::int64_t>{1, 2, 3, 4, 5, 7, 1000, 8191, 8193, 16390, 70001};
}

struct Moments {
    double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments(const std::vector<double>& values) {
    Moments m;
    const auto n = static_cast<double>(values.size());
    for (const double x : values) m.mean += x / n;
    for (const double x : values) m.variance += (x - m.mean) * (x - m.mean) / n;
    for (const double x : values) {
        const double z = (x - m.mean) / std::sqrt(m.variance);
        m.skewness += z * z * z / n;
        m.kurtosis += z * z * z * z / n;
    }
    return m;
}

}  // namespace

TEST_CASE("random: uniforms match the host's Philox bit for bit, at any seed, offset and size") {
    for (const DType dtype : floats())
        for (const std::int64_t size : sizes()) {
            const std::uint64_t seed = 0x123456789abcdefULL + static_cast<std::uint64_t>(size),
                                offset = size % 2 == 0 ? 5 : 0xfffffffdULL;  // crosses 2^32
            CAPTURE(size);
            const Position position(seed, offset);
            const RandomCall call = ops::take_random(device(), dtype, size);
            CHECK(call.offset == static_cast<std::int64_t>(offset));
            const Guarded result(size, dtype);
            ops::random_uniform(result.out, 0, 1, call);
            const auto result_values = result.content();
            int wrong = 0;
            for (std::size_t i = 0; i < result_values.size(); ++i)
                wrong += result_values[i] != uniform(dtype, seed, offset, i);
            CHECK(wrong == 0);
            const std::uint64_t numbers_per_block = dtype == DType::f32 ? 4 : 2;
            CHECK(ops::random_position(device()).offset ==
                  offset + (static_cast<std::uint64_t>(size) + numbers_per_block - 1) / numbers_per_block);
        }
}

TEST_CASE("random: uniforms of an interval exclude its upper end") {
    // Here one in sixteen would round up to the upper end.
    for (const auto& [low, high] :
         {std::pair{1048576.0, 1048577.0}, std::pair{-1.0, 0.0}, std::pair{1.0, 2.0}, std::pair{3.0, 3.0}}) {
        CAPTURE(low);
        const Guarded result(4000, DType::f32);
        ops::random_uniform(result.out, low, high, ops::take_random(device(), DType::f32, 4000));
        const auto result_values = result.content();
        CHECK(*std::ranges::min_element(result_values) >= low);
        if (low < high) CHECK(*std::ranges::max_element(result_values) < high);
        else CHECK(*std::ranges::max_element(result_values) == low);
    }
    const Position position(9, 0);
    const Guarded result(1001, DType::f32);
    ops::random_uniform(result.out, -3, 5, ops::take_random(device(), DType::f32, 1001));
    const auto result_values = result.content();
    std::vector<double> expected;
    for (std::size_t i = 0; i < 1001; ++i) expected.push_back(-3 + 8 * uniform(DType::f32, 9, 0, i));
    CHECK(difference(result_values, expected, {.absolute = 4e-7, .relative = 0}) == "");
}

TEST_CASE("random: moments of the distributions") {
    const std::int64_t size = small_cases() ? 1000 : 200000;
    const double slack = 5 / std::sqrt(static_cast<double>(size));  // five standard errors, scaled for each moment
    for (const DType dtype : floats()) {
        const Position position(2024, 0);
        const Guarded uniforms(size, dtype), normals(size, dtype);
        ops::random_uniform(uniforms.out, 0, 1, ops::take_random(device(), dtype, size));
        const auto u = uniforms.content();
        const Moments uniform_moments = moments(u);
        CHECK(std::abs(uniform_moments.mean - 0.5) < slack * 0.29);
        CHECK(std::abs(uniform_moments.variance - 1.0 / 12) < slack * 0.075);
        CHECK(std::abs(uniform_moments.kurtosis - 1.8) < slack);
        double neighbours = 0;
        for (std::size_t i = 1; i < u.size(); ++i)
            neighbours += (u[i] - 0.5) * (u[i - 1] - 0.5) * 12 / static_cast<double>(size);
        CHECK(std::abs(neighbours) < slack);

        ops::random_normal(normals.out, 0, 1, ops::take_random(device(), dtype, size));
        const Moments normal = moments(normals.content());
        CHECK(std::abs(normal.mean) < slack);
        CHECK(std::abs(normal.variance - 1) < slack * 1.42);
        CHECK(std::abs(normal.skewness) < slack * 2.5);
        CHECK(std::abs(normal.kurtosis - 3) < slack * 5);
    }
    const Position position(2024, 0);
    const Guarded standard(999, DType::f32), shifted(999, DType::f32);
    const RandomCall call = ops::take_random(device(), DType::f32, 999);
    ops::random_normal(standard.out, 0, 1, call);
    ops::random_normal(shifted.out, 10, 0.5, call);
    auto expected = standard.content();
    for (double& x : expected) x = 10 + 0.5 * x;
    CHECK(difference(shifted.content(), expected, {.absolute = 1e-6, .relative = 0}) == "");
}

TEST_CASE("random: bernoulli compares uniforms with p") {
    for (const DType dtype : floats())
        for (const double probability : {0.0, 0.25, 0.9, 1.0}) {
            const Position position(77, 3);
            const Guarded result(1003, dtype);
            ops::random_bernoulli(result.out, probability, ops::take_random(device(), dtype, 1003));
            std::vector<double> expected;
            for (std::size_t i = 0; i < 1003; ++i)
                expected.push_back(uniform(dtype, 77, 3, i) <
                                           (dtype == DType::f32 ? static_cast<float>(probability) : probability)
                                       ? 1
                                       : 0);
            CHECK(difference(result.content(), expected, {}) == "");
        }
}

TEST_CASE("random: seeds and generator positions") {
    const Position position(1, 0);
    const auto draw = [](std::int64_t size) {
        const Guarded result(size, DType::f32);
        ops::random_uniform(result.out, 0, 1, ops::take_random(device(), DType::f32, size));
        return result.content();
    };
    ops::seed_all(11);
    CHECK(ops::random_position(device()).seed == 11);
    CHECK(ops::random_position(device()).offset == 0);
    const auto first = draw(10), second = draw(10);
    CHECK(first != second);
    const auto stream_position = ops::random_position(device());
    CHECK(stream_position.offset == 6);
    const auto third = draw(10);
    ops::set_random_position(device(), stream_position);
    CHECK(draw(10) == third);
    ops::seed_all(11);
    CHECK(draw(10) == first);
    CHECK(draw(10) == second);
    ops::seed_all(12);
    CHECK(draw(10) != first);
    // A device opened later has the seed as well.
    const Device new_device = fresh_device();
    CHECK(ops::random_position(new_device).seed == 12);
    // A deferred call keeps its numbers, even if the seed is changed before it is evaluated.
    ops::seed_all(11);
    const RandomCall call = ops::take_random(device(), DType::f32, 10);
    ops::seed_all(99);
    const Guarded result(10, DType::f32);
    ops::random_uniform(result.out, 0, 1, call);
    CHECK(result.content() == first);
}

TEST_CASE("random: concurrent threads get different numbers") {
    const Position position(5, 0);
    std::vector<std::vector<std::int64_t>> offsets(4);
    const auto faults = run_in_threads(4, [&](int number) -> std::string {
        for (int i = 0; i < 100; ++i)
            offsets[static_cast<std::size_t>(number)].push_back(ops::take_random(device(), DType::f32, 9).offset);
        return "";
    });
    for (const std::string& fault : faults) CHECK(fault == "");
    std::vector<std::int64_t> all;
    for (const auto& list : offsets) all.insert(all.end(), list.begin(), list.end());
    std::ranges::sort(all);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK_UNARY(all[i] == static_cast<std::int64_t>(3 * i));
}

TEST_CASE("dropout: drops by the uniforms, scales the rest, and does the same to the gradient") {
    for (const DType dtype : floats())
        for (const double probability : {0.0, 0.3, 0.75, 1.0})
            for (const std::int64_t size : sizes()) {
                CAPTURE(probability);
                CAPTURE(size);
                const Position position(42, 7);
                const RandomCall call = ops::take_random(device(), dtype, size);
                const auto in = random_values(size, 1, 1, 2), out_gradient = random_values(size, 2, 1, 2);
                const Guarded out(size, dtype), gradient(size, dtype), in_place(size, dtype);
                const Expression chosen = ops::random_bernoulli(dtype, {size}, probability, call);
                const std::array scale{Scalar(probability < 1 ? 1 / (1 - probability) : 0)};
                const auto dropout_of = [&](const View& from) {
                    return Expression::apply(Function::dropout, std::array{Expression(from), chosen}, scale);
                };
                ops::evaluate(dropout_of(tensor(in, {size}, dtype).view()), out.out);
                const auto rule = Expression::gradient(Function::dropout, 0, tensor(out_gradient, {size}, dtype).view(),
                                                       std::array{Expression(), chosen}, {}, scale);
                ops::evaluate(rule, gradient.out);
                ops::copy(tensor(in, {size}, dtype).view(), in_place.out);
                ops::evaluate(dropout_of(in_place.out), in_place.out);
                std::vector<double> expected, expected_gradient;
                for (std::size_t i = 0; i < in.size(); ++i) {
                    const bool dropped = uniform(dtype, 42, 7, i) <
                                         (dtype == DType::f32 ? static_cast<float>(probability) : probability);
                    expected.push_back(dropped ? 0 : in[i] / (1 - probability));
                    expected_gradient.push_back(dropped ? 0 : out_gradient[i] / (1 - probability));
                }
                CHECK(difference(out.content(), expected, tolerance(dtype)) == "");
                CHECK(difference(gradient.content(), expected_gradient, tolerance(dtype)) == "");
                CHECK(in_place.content() == out.content());
            }
}

namespace {

using Leaf = Expression (*)(DType, const Shape&, const RandomCall&);

Expression uniform_leaf(DType dtype, const Shape& shape, const RandomCall& call) {
    return ops::random_uniform(dtype, shape, -3, 5, call);
}
Expression normal_leaf(DType dtype, const Shape& shape, const RandomCall& call) {
    return ops::random_normal(dtype, shape, 1, 2, call);
}
Expression bernoulli_leaf(DType dtype, const Shape& shape, const RandomCall& call) {
    return ops::random_bernoulli(dtype, shape, 0.4, call);
}

std::vector<double> stored(Leaf leaf, DType dtype, const Shape& shape, const RandomCall& call) {
    return values(Tensor(ops::evaluate(leaf(dtype, shape, call), device())));
}

/// The elements of an expression, computed with an added 0 so that the leaf is not its root.
std::vector<double> beside_zeros(const Expression& leaf, const Shape& shape, KernelStyle style) {
    const ops::KernelStyleScope scope(style);
    const View zeros = View::make(device(), leaf.dtype(), shape);
    ops::fill(zeros, 0);
    return values(
        Tensor(ops::evaluate(Expression::apply(Function::add, std::array{Expression(zeros), leaf}), device())));
}

}  // namespace

TEST_CASE("random: numbers fused into an expression equal stored ones bit for bit") {
    for (const KernelStyle style : kernel_styles()) {
        for (const DType dtype : floats())
            for (const Leaf leaf : {uniform_leaf, normal_leaf, bernoulli_leaf}) {
                for (const std::int64_t size : small_cases()
                                                   ? std::vector<std::int64_t>{5}
                                                   : std::vector<std::int64_t>{1, 2, 3, 511, 513, 1030, 8195, 20003}) {
                    CAPTURE(size);
                    const Position position(9, 0xfffffff0ULL);
                    const RandomCall call = ops::take_random(device(), dtype, size);
                    CHECK(beside_zeros(leaf(dtype, {size}, call), {size}, style) == stored(leaf, dtype, {size}, call));
                }
                // Broadcast and permuted: the innermost axis of the output is the middle one of the numbers.
                const RandomCall call = ops::take_random(device(), dtype, 7 * 1 * 9);
                const auto compact = stored(leaf, dtype, {7, 1, 9}, call);
                const auto expanded = beside_zeros(leaf(dtype, {7, 1, 9}, call), {7, 5, 9}, style);
                const auto expanded_row = beside_zeros(leaf(dtype, {9, 1}, call), {9, 5}, style);
                const View permuted_view = View::make(device(), dtype, {9, 7, 5});
                {
                    const ops::KernelStyleScope scope(style);
                    ops::evaluate(Expression::apply(Function::mul_scalar, std::array{leaf(dtype, {5, 7, 9}, call)},
                                                    std::array{Scalar(1.0)}),
                                  ops::permuted(permuted_view, {2, 1, 0}));
                }
                const auto all = stored(leaf, dtype, {5, 7, 9}, call), back = values(Tensor(permuted_view));
                int wrong = 0;
                for (std::size_t i = 0; i < 7; ++i)
                    for (std::size_t j = 0; j < 5; ++j)
                        for (std::size_t k = 0; k < 9; ++k) {
                            wrong += expanded[(i * 5 + j) * 9 + k] != compact[i * 9 + k];
                            wrong += back[(k * 7 + i) * 5 + j] != all[(j * 7 + i) * 9 + k];
                            if (i == 0) wrong += expanded_row[k * 5 + j] != compact[k];
                        }
                CHECK(wrong == 0);
            }
    }
    // Rows that start within a block.
    const RandomCall call = ops::take_random(device(), DType::f32, 3 * 7);
    const View rows_view = View::make(device(), DType::f32, {3, 10});
    const View part = ops::sliced(rows_view, 1, 2, 7);
    ops::fill(rows_view, 0);
    ops::evaluate(Expression::apply(Function::add, std::array{Expression(part), normal_leaf(DType::f32, {3, 7}, call)}),
                  part);
    CHECK(values(Tensor(ops::dense_copy_if_needed(part))) == stored(normal_leaf, DType::f32, {3, 7}, call));
    if (!device().info().fp64) return;
    // f32 numbers in an f64 expression are unchanged.
    CHECK(beside_zeros(Expression::cast(normal_leaf(DType::f32, {3, 7}, call), DType::f64), {3, 7},
                       KernelStyle::simd) == stored(normal_leaf, DType::f32, {3, 7}, call));
}

TEST_CASE("random: error messages") {
    const RandomCall call = ops::take_random(device(), DType::f32, 100);
    const View out = View::make(device(), DType::f32, {10}), integers = View::make(device(), DType::i32, {10});
    CHECK_THROWS_AS(ops::random_uniform(integers, 0, 1, call), TypeError);
    CHECK_THROWS_AS(ops::random_normal(ops::sliced(out, 0, 0, 5, 2), 0, 1, call), ShapeError);
    CHECK_THROWS_AS(ops::random_bernoulli(DType::f16, {10}, 0.5, call), TypeError);
    CHECK_THROWS_AS(ops::random_uniform(DType::f32, {-1}, 0, 1, call), ShapeError);
    CHECK_THROWS_AS(ops::evaluate(ops::random_uniform(DType::f32, {10}, 0, 1, call), integers), TypeError);
    CHECK_THROWS_AS(ops::evaluate(ops::random_uniform(DType::f32, {11}, 0, 1, call), out), ShapeError);
    CHECK_NOTHROW(ops::random_uniform(View::make(device(), DType::f32, {0}), 0, 1, call));
}
