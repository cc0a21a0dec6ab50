// Matrix products by every strategy against a plain reference.
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <declivity/ops/matmul.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/ops/matmul_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_calls.hpp>

#include "ops/local_tile.hpp"
#include "ops/matmul_strategies.hpp"
#include "ops/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Expression;
using ops::Function;
using ops::View;

namespace {

/// A dense view in the middle of a buffer of NaN, which shows whether somebody writes beside it, or reads before writing.
struct Guarded {
    View whole, out;
    explicit Guarded(const Shape& shape, DType dtype) : whole(View::make(device(), dtype, {shape.numel() + 64})), out(whole) {
        ops::fill(whole, NAN);
        out.offset = 32;
        out.shape = shape;
        out.strides = dense_strides(shape);
    }
    [[nodiscard]] bool intact() const {
        const auto all = values(Tensor(whole));
        return std::all_of(all.begin(), all.begin() + 32, [](double x) { return std::isnan(x); }) &&
               std::all_of(all.end() - 32, all.end(), [](double x) { return std::isnan(x); });
    }
};

void check(const MatmulCase& one, DType dtype) {
    CAPTURE(one.name());
    CAPTURE(name_of(dtype));
    const auto a = matmul_operand(one.a, one.batch, one.m, one.k, 1, dtype), b = matmul_operand(one.b, one.batch, one.k, one.n, 2, dtype);
    const Guarded result({one.batch, one.m, one.n}, dtype);
    ops::matmul(a.view, b.view, result.out);
    CHECK(difference(Tensor(result.out), matmul_reference(one, a.elements, b.elements), one.allowed(dtype)) == "");
    CHECK(result.intact());
}

/// The form that a strategy is made for; those for both are tested as the device is.
std::optional<ops::FamilyScope> family_for(std::string_view strategy) {
    if (strategy == "local" || strategy == "gemv") return std::optional<ops::FamilyScope>(std::in_place, Family::gpu_like);
    return std::nullopt;
}

void check_all(const char* strategy, DType dtype) {
    const Environment set("DECLIVITY_MATMUL", strategy);
    const auto family = family_for(strategy);
    for (const MatmulCase& one : matmul_cases())
        if (!one.large || (!small_cases() && one.flops() < 2e7)) check(one, dtype);
}

}  // namespace

TEST_CASE("matmul: tiled, f32") { check_all("tiled", DType::f32); }

TEST_CASE("matmul: tiled, f64") {
    if (device().info().fp64) check_all("tiled", DType::f64);
}

TEST_CASE("matmul: packed, f32") { check_all("packed", DType::f32); }

TEST_CASE("matmul: packed, f64") {
    if (device().info().fp64) check_all("packed", DType::f64);
}

TEST_CASE("matmul: blocked, f32") { check_all("blocked", DType::f32); }

TEST_CASE("matmul: blocked, f64") {
    if (device().info().fp64) check_all("blocked", DType::f64);
}

TEST_CASE("matmul: split, f32") { check_all("split", DType::f32); }

TEST_CASE("matmul: split, f64") {
    if (device().info().fp64) check_all("split", DType::f64);
}

TEST_CASE("matmul: dot, f32") { check_all("dot", DType::f32); }

TEST_CASE("matmul: dot, f64") {
    if (device().info().fp64) check_all("dot", DType::f64);
}

TEST_CASE("matmul: local, f32") { check_all("local", DType::f32); }

TEST_CASE("matmul: local, f64") {
    if (device().info().fp64) check_all("local", DType::f64);
}

TEST_CASE("matmul: gemv, f32") { check_all("gemv", DType::f32); }

TEST_CASE("matmul: gemv, f64") {
    if (device().info().fp64) check_all("gemv", DType::f64);
}

TEST_CASE("matmul: local, every tile and way to read, with sums as a whole and in parts") {
    const ops::FamilyScope scope(Family::gpu_like);
    std::vector<MatmulCase> cases;
    if (small_cases()) {
        cases = {{1, 5, 8, 17, Lie::transposed, Lie::dense}};
    } else {
        for (const Lie a : {Lie::dense, Lie::transposed, Lie::sliced})
            for (const Lie b : {Lie::dense, Lie::transposed, Lie::scattered}) {
                cases.push_back({1, 133, 261, 43, a, b});  // single elements
                cases.push_back({2, 132, 136, 44, a, b});  // vectors of 4
            }
        cases.push_back({3, 64, 128, 128, Lie::repeated, Lie::repeated});
    }
    // The tuner's, for a product that all of them suit.
    std::vector<std::string> variants = ops::local_variants(device(), DType::f32, {.rows = 4096, .columns = 4096, .k = 16});
    CHECK(variants.size() == 7);
    for (const char* in_parts : {"128x128x2", "64x64x3", "32x32x1000", "16x64x2"}) variants.emplace_back(in_parts);
    if (small_cases()) variants = {"128x128", "64x64", "16x64", "32x32x2"};
    for (const MatmulCase& one : cases)
        for (const std::string& variant : variants)
            for (const DType dtype : {DType::f32, DType::f64}) {
                if (dtype == DType::f64 && (!device().info().fp64 || small_cases() || one.batch > 1)) continue;
                CAPTURE(one.name());
                CAPTURE(variant);
                const auto a = matmul_operand(one.a, one.batch, one.m, one.k, 1, dtype), b = matmul_operand(one.b, one.batch, one.k, one.n, 2, dtype);
                const Guarded result({one.batch, one.m, one.n}, dtype);
                ops::matmul_local({.a = a.view, .b = b.view, .out = result.out, .batch = one.batch, .m = one.m, .n = one.n, .k = one.k, .variant = variant});
                CHECK(difference(Tensor(result.out), matmul_reference(one, a.elements, b.elements), one.allowed(dtype)) == "");
                CHECK(result.intact());
            }
}

TEST_CASE("matmul: how products are cut into tiles") {
    const auto first = [](const ops::LocalProduct& product, const char* variant = "") { return ops::local_cuts(device(), DType::f32, product, variant).front(); };
    CHECK(first({.rows = 4096, .columns = 4096, .k = 1024}).tile.name() == "128x128");
    CHECK(first({.rows = 4096, .columns = 4096, .k = 1024}).parts == 1);
    CHECK(first({.rows = 10, .columns = 4096, .k = 512}).tile.name() == "16x64");
    CHECK(first({.rows = 4096, .columns = 10, .k = 512}).tile.name() == "64x16");
    CHECK(first({.rows = 20, .columns = 20, .k = 64}).parts == 1);
    const ops::LocalCut few = first({.rows = 20, .columns = 20, .k = 100000});
    CHECK(few.parts > 1);
    CHECK(few.each % few.tile.slice == 0);
    CHECK((few.parts - 1) * few.each < 100000);
    CHECK(few.parts * few.each >= 100000);
    CHECK(first({.rows = 20, .columns = 20, .k = 100000, .may_split = false}).parts == 1);
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "128x64").tile.name() == "128x64");
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "128x128x3").parts == 3);
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "no such tile").tile.name() == "32x32");
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "32x32xx").parts == 1);
}

TEST_CASE("matmul: CLBlast, f32") { check_all("clblast", DType::f32); }

TEST_CASE("matmul: CLBlast, f64") {
    // Its kernels take long to compile on a simulated device.
    if (device().info().fp64 && !small_cases()) check_all("clblast", DType::f64);
}

TEST_CASE("matmul: the strategy chosen by itself") {
    const Environment none("DECLIVITY_MATMUL", std::nullopt);
    for (const Family family : {Family::cpu_like, Family::gpu_like}) {
        const ops::FamilyScope scope(family);
        for (const MatmulCase& one : matmul_cases())
            if (!one.large || !small_cases()) check(one, DType::f32);
    }
}

TEST_CASE("matmul: nothing to add up gives zeros, nothing to compute gives nothing") {
    for (const auto& [batch, m, n, k] : {std::array<std::int64_t, 4>{2, 3, 5, 0}, {0, 3, 5, 2}, {2, 0, 5, 3}, {2, 3, 0, 3}}) {
        const View a = View::make(device(), DType::f32, {batch, m, k}), b = View::make(device(), DType::f32, {batch, k, n});
        const Guarded result({batch, m, n}, DType::f32);
        ops::matmul(a, b, result.out);
        CHECK(values(Tensor(result.out)) == std::vector<double>(static_cast<std::size_t>(batch * m * n), 0));
        CHECK(result.intact());
    }
}

TEST_CASE("matmul: infinities and NaN stay visible") {
    for (const char* strategy : {"tiled", "packed", "blocked", "split", "dot", "local", "clblast"}) {
        const Environment set("DECLIVITY_MATMUL", strategy);
        const auto family = family_for(strategy);
        auto left = random_values(7 * 20, 1);
        left[3 * 20 + 11] = NAN;
        left[5 * 20 + 1] = INFINITY;
        const View a = tensor(left, {1, 7, 20}).view(), b = random_tensor({1, 20, 9}, 2).view();
        const View out = View::make(device(), DType::f32, {1, 7, 9});
        ops::matmul(a, b, out);
        const auto result = values(Tensor(out));
        for (std::size_t i = 0; i < result.size(); ++i) {
            CAPTURE(i);
            CHECK(std::isnan(result[i]) == (i / 9 == 3));
            CHECK(std::isinf(result[i]) == (i / 9 == 5));
        }
    }
}

TEST_CASE("matmul: an epilogue runs over the product") {
    // Several blocks of k, edges of panels, operands that each strategy can take.
    const MatmulCase cases[] = {{2, 5, 6, 7, Lie::dense, Lie::transposed}, {1, 9, 50, small_cases() ? 20 : 1100, Lie::dense, Lie::transposed}, {3, 16, 96, 3}};
    struct Tail {
        const char* name;
        bool rectified, apart;  // apart: something that is more than a bias for each column
        Shape bias;             // of rank 0: none
    };
    const auto tails = [](const MatmulCase& one) {
        return std::array{Tail{"bias", false, false, {one.n}}, Tail{"bias, relu", true, false, {1, one.n}}, Tail{"relu", true, false, {}},
                          Tail{"a number for each row", true, false, {one.m, 1}}, Tail{"residual", false, false, {one.batch, one.m, one.n}},
                          Tail{"relu first", true, true, {one.n}}};
    };
    for (const char* strategy : {"tiled", "packed", "blocked", "split", "dot", "clblast"})
        for (const MatmulCase& one : cases)
            for (const auto& [name, rectified, apart, shape] : tails(one)) {
                const std::string_view here = strategy;
                // Only these apply it themselves.
                if (small_cases() && here != "blocked" && here != "dot" && (&one != cases || shape.rank() != 2)) continue;
                CAPTURE(strategy);
                CAPTURE(one.name());
                CAPTURE(name);
                const Environment set("DECLIVITY_MATMUL", strategy);
                const auto a = matmul_operand(one.a, one.batch, one.m, one.k, 1, DType::f32), b = matmul_operand(one.b, one.batch, one.k, one.n, 2, DType::f32);
                const Shape result_shape{one.batch, one.m, one.n};
                const Tensor bias = shape.rank() > 0 ? random_tensor(shape, 3) : Tensor();
                const auto with_bias = [&](const Expression& x) {
                    const Expression sum[] = {x, bias.view()};
                    return Expression::apply(Function::add, sum);
                };
                const auto relu = [](const Expression& x) { return Expression::apply(Function::relu, std::span(&x, 1)); };
                Expression tail = Expression::operator_result(DType::f32, result_shape);
                if (apart) tail = with_bias(relu(tail));
                else if (shape.rank() > 0) tail = with_bias(tail);
                if (rectified && !apart) tail = relu(tail);
                const Guarded result(result_shape, DType::f32);
                ops::matmul(a.view, b.view, result.out, {tail});
                auto wanted = matmul_reference(one, a.elements, b.elements);
                const auto added = shape.rank() > 0 ? values(Tensor(ops::expanded("test", bias.view(), result_shape))) : std::vector<double>(wanted.size(), 0);
                for (std::size_t i = 0; i < wanted.size(); ++i)
                    if (apart) wanted[i] = std::max(0.0, wanted[i]) + added[i];
                    else wanted[i] = rectified ? std::max(0.0, wanted[i] + added[i]) : wanted[i] + added[i];
                CHECK(difference(Tensor(result.out), wanted, tolerance(DType::f32, static_cast<double>(one.k + 1))) == "");
                CHECK(result.intact());
            }
}

TEST_CASE("matmul: equal calls give equal bits") {
    const auto a = random_tensor({1, 50, 77}, 1).view(), b = ops::permuted(random_tensor({1, 33, 77}, 2).view(), {0, 2, 1});
    for (const char* strategy : {"tiled", "packed", "blocked", "split", "dot", "local"}) {
        const Environment set("DECLIVITY_MATMUL", strategy);
        const auto family = family_for(strategy);
        const auto once = [&] {
            const View out = View::make(device(), DType::f32, {1, 50, 33});
            ops::matmul(a, b, out);
            return values(Tensor(out));
        };
        CAPTURE(strategy);
        CHECK(once() == once());
    }
}

TEST_CASE("matmul: CLBlast makes no buffers of its own") {
    if (small_cases()) return;
    const Environment set("DECLIVITY_MATMUL", "clblast"), pool("DECLIVITY_POOL", std::nullopt);
    const Device fresh = fresh_device();
    const auto made = [&](const Shape& shape) {
        const View view = View::make(fresh, DType::f32, shape);
        ops::fill(view, 0.5);
        return view;
    };
    // Large enough for its indirect kernels, odd enough that these want padded copies; the second of a batch starts
    // elsewhere than the first, and so may want more.
    const std::int64_t size = small_cases() ? 65 : 401;
    const View a = made({2, size, size + 2}), b = ops::permuted(made({2, size + 1, size + 2}), {0, 2, 1}), out = made({2, size, size + 1});
    ops::matmul(a, b, out);
    const long before = opencl_calls().create_buffer;
    ops::matmul(a, b, out);
    fresh.synchronize();
    CHECK(opencl_calls().create_buffer == before);
    const auto result = values(Tensor(out));
    CHECK(difference({result.front(), result.back()}, {0.25 * static_cast<double>(size + 2), 0.25 * static_cast<double>(size + 2)}, tolerance(DType::f32, 400)) == "");
}

TEST_CASE("matmul: what does not fit is refused") {
    const View a = random_tensor({2, 3, 4}, 1).view(), b = random_tensor({2, 4, 5}, 2).view(), out = random_tensor({2, 3, 5}, 3).view();
    CHECK_THROWS_WITH_AS(ops::matmul(a, a, out), "matmul: wants (batch, M, K) x (batch, K, N), got [2, 3, 4] x [2, 3, 4]", ShapeError);
    CHECK_THROWS_AS(ops::matmul(a, random_tensor({3, 4, 5}, 2).view(), out), ShapeError);
    CHECK_THROWS_AS(ops::matmul(ops::reshaped(a, {6, 4}), b, out), ShapeError);
    CHECK_THROWS_AS(ops::matmul(a, b, random_tensor({2, 5, 3}, 3).view()), ShapeError);
    CHECK_THROWS_AS(ops::matmul(a, b, ops::permuted(random_tensor({2, 5, 3}, 3).view(), {0, 2, 1})), ShapeError);
    const View whole = View::make(device(), DType::i32, {2, 3, 4});
    CHECK_THROWS_AS(ops::matmul(whole, b, out), TypeError);
    if (device().info().fp64) CHECK_THROWS_AS(ops::matmul(a, View::make(device(), DType::f64, {2, 4, 5}), out), TypeError);
    CHECK_THROWS_AS(ops::matmul(a, View::make(fresh_device(), DType::f32, {2, 4, 5}), out), DeviceError);
    const View square = random_tensor({1, 4, 4}, 1).view();
    CHECK_THROWS_AS(ops::matmul(square, random_tensor({1, 4, 4}, 1).view(), square), ValueError);
    const Environment wrong("DECLIVITY_MATMUL", "fast");
    CHECK_THROWS_WITH_AS(ops::matmul(a, b, out), "DECLIVITY_MATMUL: wants one of blocked, clblast, dot, gemv, local, packed, split, tiled, got \"fast\"", ValueError);
}
