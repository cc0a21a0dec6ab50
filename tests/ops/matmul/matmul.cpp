// Matrix products by every strategy compared with a plain reference.
#include "matmul_fixture.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/opencl_calls.hpp>

#include "ops/matmul/matmul_strategies.hpp"
#include "ops/support/local_tile.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Function;

namespace {

void check_all(std::string_view strategy, DType dtype) {
    const Environment set("DECLIVITY_MATMUL", std::string(strategy));
    const auto style = kernel_style_for(strategy_of(strategy));
    // Each operand layout of "tiled" is a kernel that takes seconds to compile for a CPU.
    const bool local = strategy == "tiled", gemv = strategy == "gemv",
               only_large = small_cases() || (local && dtype == DType::f64);
    int number = 0;
    for (const MatmulCase& matmul_case : matmul_cases()) {
        // CLBlast's kernels are not under test here: a simulated device takes minutes for them.
        if (small_cases() && strategy == "clblast" && (dtype == DType::f64 || number++ % 4 != 1)) continue;
        // Each of its tiles is expensive on a simulated device.
        if (small_cases() && local && (matmul_case.batch > 3 || (dtype == DType::f64 && matmul_case.batch > 1)))
            continue;
        if (gemv && std::min(matmul_case.m, matmul_case.n) > 4) continue;  // not applicable
        if (!matmul_case.large || (!only_large && matmul_case.flops() < 2e7)) check(matmul_case, dtype);
    }
}

}  // namespace

TEST_CASE("matmul: a batch of two products of 2 x 2 matrices") {
    const Tensor a = tensor({1, 2, 3, 4, 1, 0, 0, 2}, {2, 2, 2}), b = tensor({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
    const Guarded result({2, 2, 2}, DType::f32);
    ops::matmul(a.view(), b.view(), result.out);
    CHECK(values(Tensor(result.out)) == std::vector<double>{7, 10, 15, 22, 5, 6, 14, 16});
    CHECK(result.intact());
}

TEST_CASE("matmul: each strategy, f32") {
    for (const ops::MatmulStrategy* strategy : ops::matmul_strategies())
        SUBCASE(std::string(strategy->name()).c_str()) check_all(strategy->name(), DType::f32);
}

TEST_CASE("matmul: each strategy, f64") {
    if (!device().info().fp64) return;
    for (const ops::MatmulStrategy* strategy : ops::matmul_strategies())
        SUBCASE(std::string(strategy->name()).c_str()) check_all(strategy->name(), DType::f64);
}

TEST_CASE("matmul: stream, few rows along the contiguous axis of both operands") {
    const auto styles = kernel_styles();
    if (std::ranges::find(styles, KernelStyle::simd) == styles.end()) return;
    const Environment set("DECLIVITY_MATMUL", "stream");
    const ops::KernelStyleScope style(KernelStyle::simd);
    std::vector<DType> types = floats();
    types.insert(types.end(), {DType::f16, DType::bf16});
    for (const MatmulCase& matmul_case : {MatmulCase{1, 1, 1, 1, OperandStrides::dense, OperandStrides::transposed},
                                          {3, 2, 5, 7, OperandStrides::dense, OperandStrides::transposed},
                                          {2, 3, 70, 97, OperandStrides::sliced, OperandStrides::transposed, true},
                                          {3, 4, 33, 300, OperandStrides::repeated, OperandStrides::transposed},
                                          {2, 1, 257, 128, OperandStrides::dense, OperandStrides::transposed, true},
                                          {2, 3, 19, 1, OperandStrides::sliced, OperandStrides::sliced}})
        for (const DType dtype : types)
            if (!small_cases() || (!matmul_case.large && dtype != DType::bf16)) check(matmul_case, dtype);
}

TEST_CASE("matmul: f16 and bf16 accumulate in f32 and are rounded once") {
    for (const std::string_view strategy : {"register_tiled", "packed", "blocked", "split", "tiled", "gemv"}) {
        const Environment set("DECLIVITY_MATMUL", std::string(strategy));
        const auto style = kernel_style_for(strategy_of(strategy));
        const bool local = strategy == "tiled", gemv = strategy == "gemv";
        CAPTURE(strategy);
        // Dense and transposed, partial tiles, vectors of 4, several blocks of k, one row.
        std::vector<MatmulCase> cases{{2, 7, 18, 5, OperandStrides::transposed, OperandStrides::dense},
                                      {2, 8, 12, 20, OperandStrides::dense, OperandStrides::transposed},
                                      {1, 3, 50, 1024, OperandStrides::dense, OperandStrides::transposed, true},
                                      {1, 61, 70, 801, OperandStrides::transposed, OperandStrides::dense, true},
                                      {3, 24, 80, 133, OperandStrides::repeated, OperandStrides::transposed, true},
                                      {1, 1, 400, 500, OperandStrides::dense, OperandStrides::dense, true}};
        if (!local)
            cases.insert(cases.end(), {{1, 33, 47, 1290, OperandStrides::sliced, OperandStrides::scattered, true},
                                       {3, 17, 1, 4},
                                       {1, 1, 1, 1},
                                       {1, 1, 6, 5, OperandStrides::transposed, OperandStrides::scattered},
                                       {4, 130, 260, 100, OperandStrides::dense, OperandStrides::sliced, true}});
        if (gemv)
            cases.insert(cases.end(), {{2, 1, 20, 16, OperandStrides::dense, OperandStrides::transposed},
                                       {1, 2, 5, 50000, OperandStrides::dense, OperandStrides::dense, true}});
        // A few for slow checkers.
        if (small_cases())
            cases = gemv ? std::vector<MatmulCase>{{1, 1, 20, 16, OperandStrides::dense, OperandStrides::transposed}}
                         : std::vector<MatmulCase>{{1, 5, 18, 8, OperandStrides::transposed, OperandStrides::dense}};
        for (const MatmulCase& test_case : cases) {
            if (gemv && std::min(test_case.m, test_case.n) > 4) continue;
            for (const DType dtype : {DType::f16, DType::bf16}) {
                if ((small_cases() || local) && (dtype == DType::bf16) != (test_case.m % 2 == 0)) continue;
                check(test_case, dtype);
            }
        }
    }
    // Both would convert repeatedly, or do not support 16-bit operands.
    const View a = random_tensor({1, 4, 40}, 1, DType::f16).view(),
               b = ops::permuted(random_tensor({1, 5, 40}, 2, DType::f16).view(), {0, 2, 1}),
               out = View::make(device(), DType::f16, {1, 4, 5});
    const ops::MatmulProblem problem = ops::matmul_problem(a, b);
    CHECK_FALSE(ops::matmul_dot().is_applicable(problem, device()));
    CHECK_FALSE(ops::matmul_clblast().is_applicable(problem, device()));
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Environment none("DECLIVITY_MATMUL", std::nullopt);
        check({1, 4, 5, 40, OperandStrides::dense, OperandStrides::transposed}, DType::f16);
    }
    CHECK_THROWS_WITH_AS(ops::matmul(a, random_tensor({1, 40, 5}, 2, DType::bf16).view(), out),
                         "matmul: expected a and b of one type, got f16 and bf16", TypeError);
    CHECK_THROWS_WITH_AS(ops::matmul(a, b, View::make(device(), DType::f32, {1, 4, 5})),
                         "matmul: expected a and out of one type, got f16 and f32", TypeError);
}

TEST_CASE("matmul: tiled with every tile and operand layout, with and without split-K") {
    const ops::KernelStyleScope scope(KernelStyle::simt);
    std::vector<MatmulCase> cases;
    if (small_cases()) {
        cases = {{1, 5, 8, 9, OperandStrides::transposed, OperandStrides::dense}};
    } else {
        // Single elements, across the tile and along k, and vectors of 4.
        cases = {{1, 133, 261, 43, OperandStrides::transposed, OperandStrides::dense},
                 {1, 133, 261, 43, OperandStrides::dense, OperandStrides::transposed},
                 {2, 132, 136, 44, OperandStrides::transposed, OperandStrides::dense},
                 {2, 132, 136, 44, OperandStrides::dense, OperandStrides::transposed},
                 {3, 64, 128, 128, OperandStrides::repeated, OperandStrides::repeated}};
    }
    // The tuner's variants for a product to which all of them apply.
    std::vector<std::string> variants =
        ops::local_variants(device(), DType::f32, {.rows = 4096, .columns = 4096, .k = 16});
    CHECK(variants.size() == 7);
    for (const char* split_variant : {"64x64x3", "32x32x1000"}) variants.emplace_back(split_variant);
    if (small_cases()) variants = {"128x128", "64x64", "16x64", "32x32x2"};
    std::size_t number = 0;
    for (const MatmulCase& test_case : cases)
        for (const std::string& variant : variants)
            for (const DType dtype : floats()) {
                if (dtype == DType::f64 && (!device().info().fp64 || small_cases() || variant != "64x64")) continue;
                // Each one is a kernel that takes seconds to compile for a CPU: f16 and bf16 use a third of them.
                if (is_16bit_float(dtype) && number++ % 3 != 0 && !all_cases()) continue;
                CAPTURE(test_case.name());
                CAPTURE(variant);
                const auto a = matmul_operand(test_case.a, test_case.batch, test_case.m, test_case.k, 1, dtype),
                           b = matmul_operand(test_case.b, test_case.batch, test_case.k, test_case.n, 2, dtype);
                const Guarded result({test_case.batch, test_case.m, test_case.n}, dtype);
                ops::matmul_tiled().run(ops::matmul_problem(a.view, b.view), {a.view, b.view, result.out}, variant);
                CHECK(difference(Tensor(result.out), matmul_reference(test_case, a.elements, b.elements),
                                 test_case.allowed(dtype)) == "");
                CHECK(result.intact());
            }
}

TEST_CASE("matmul: choice of the tile and of split-K") {
    const auto first = [](const ops::TiledGemm& product, const char* variant = "") {
        return ops::tile_configs(device(), DType::f32, product, variant).front();
    };
    CHECK(first({.rows = 4096, .columns = 4096, .k = 1024}).tile.name() == "128x128");
    CHECK(first({.rows = 4096, .columns = 4096, .k = 1024}).parts == 1);
    // Enough work for all compute units with any tile.
    const std::int64_t long_side = std::max<std::int64_t>(4096, 512 * std::int64_t{device().info().compute_units});
    CHECK(first({.rows = 10, .columns = long_side, .k = 512}).tile.name() == "16x64");
    CHECK(first({.rows = long_side, .columns = 10, .k = 512}).tile.name() == "64x16");
    CHECK(first({.rows = 20, .columns = 20, .k = 64}).parts == 1);
    const ops::TileConfig config = first({.rows = 20, .columns = 20, .k = 100000});
    CHECK(config.parts > 1);
    CHECK(config.each % config.tile.slice == 0);
    CHECK((config.parts - 1) * config.each < 100000);
    CHECK(config.parts * config.each >= 100000);
    CHECK(first({.rows = 20, .columns = 20, .k = 100000, .may_split = false}).parts == 1);
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "128x64").tile.name() == "128x64");
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "128x128x3").parts == 3);
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "no such tile").tile.name() == "32x32");
    CHECK(first({.rows = 20, .columns = 20, .k = 100}, "32x32xx").parts == 1);
}

TEST_CASE("matmul: the default strategy") {
    const Environment none("DECLIVITY_MATMUL", std::nullopt);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const MatmulCase& matmul_case : matmul_cases())
            if (!small_cases() || (!matmul_case.large && (style == KernelStyle::simd || matmul_case.batch == 1)))
                check(matmul_case, DType::f32);
    }
}

TEST_CASE("matmul: K of 0 gives zeros, an empty result gives an empty tensor") {
    for (const auto& [batch, m, n, k] :
         {std::array<std::int64_t, 4>{2, 3, 5, 0}, {0, 3, 5, 2}, {2, 0, 5, 3}, {2, 3, 0, 3}}) {
        const View a = View::make(device(), DType::f32, {batch, m, k}),
                   b = View::make(device(), DType::f32, {batch, k, n});
        const Guarded result({batch, m, n}, DType::f32);
        ops::matmul(a, b, result.out);
        CHECK(values(Tensor(result.out)) == std::vector<double>(static_cast<std::size_t>(batch * m * n), 0));
        CHECK(result.intact());
    }
}

TEST_CASE("matmul: infinities and NaN are propagated") {
    for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
        const Environment set("DECLIVITY_MATMUL", std::string(strategy->name()));
        const auto style = kernel_style_for(*strategy);
        CAPTURE(strategy->name());
        auto left = random_values(7 * 20, 1);
        left[3 * 20 + 11] = NAN;
        left[5 * 20 + 1] = INFINITY;
        const View a = tensor(left, {1, 7, 20}).view(), b = random_tensor({1, 20, 9}, 2).view();
        if (!strategy->is_applicable(ops::matmul_problem(a, b), device())) continue;
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

TEST_CASE("matmul: packed constant operands are cached until their version changes") {
    if (!has_kernel_style(KernelStyle::simd)) return;
    const ops::KernelStyleScope scope(KernelStyle::simd);
    const MatmulCase test_case{1, 35, 70, 300, OperandStrides::dense, OperandStrides::transposed};
    for (const DType dtype : {DType::f32, DType::bf16}) {
        if (small_cases() && dtype != DType::f32) continue;
        CAPTURE(name_of(dtype));
        const auto a = matmul_operand(test_case.a, 1, test_case.m, test_case.k, 1, dtype),
                   b = matmul_operand(test_case.b, 1, test_case.k, test_case.n, 2, dtype),
                   other = matmul_operand(test_case.b, 1, test_case.k, test_case.n, 3, dtype);
        const Shape shape{1, test_case.m, test_case.n};
        const Tensor bias = random_tensor({test_case.n}, 4, dtype);
        const std::array<ops::Expression, 2> sum{ops::Expression::operator_result(dtype, shape), bias.view()};
        const ops::Epilogue biased = ops::epilogue_of(ops::Expression::apply(Function::add, sum));
        const auto wrong = [&](const MatmulOperand& right, ops::OperandUse use) {
            const View out = View::make(device(), dtype, shape);
            ops::matmul(a.view, b.view, out, biased, use);
            auto expected = matmul_reference(test_case, a.elements, right.elements);
            for (std::size_t i = 0; i < expected.size(); ++i)
                expected[i] += values(bias)[i % static_cast<std::size_t>(test_case.n)];
            return difference(Tensor(out), expected, test_case.allowed(dtype));
        };
        CHECK(wrong(b, ops::OperandUse::constant) == "");
        CHECK(wrong(b, ops::OperandUse::constant) == "");
        ops::copy(other.view, b.view);  // without a version bump
        CHECK(wrong(b, ops::OperandUse::constant) == "");
        CHECK(wrong(other, ops::OperandUse::variable) == "");
        b.view.buffer.bump_version();
        CHECK(wrong(other, ops::OperandUse::constant) == "");
    }
}

TEST_CASE("matmul: gemv splits long sums") {
    if (small_cases()) return;  // the same kernels as for the other cases
    const Environment set("DECLIVITY_MATMUL", "gemv");
    const ops::KernelStyleScope scope(KernelStyle::simt);
    for (const auto& [m, n, k, strides] :
         {std::tuple<std::int64_t, std::int64_t, std::int64_t, OperandStrides>{1, 1, 100003, OperandStrides::dense},
          {1, 3, 65536, OperandStrides::transposed},
          {2, 5, 50000, OperandStrides::dense},
          {40, 4, 30001, OperandStrides::dense}})
        check({1, m, n, k, OperandStrides::dense, strides}, DType::f32);
}

TEST_CASE("matmul: equal calls give equal bits") {
    const std::int64_t m = small_cases() ? 20 : 50, n = small_cases() ? 17 : 33, k = small_cases() ? 37 : 77;
    const auto a = random_tensor({1, m, k}, 1).view(), b = ops::permuted(random_tensor({1, n, k}, 2).view(), {0, 2, 1});
    for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
        const Environment set("DECLIVITY_MATMUL", std::string(strategy->name()));
        const auto style = kernel_style_for(*strategy);
        // CLBlast promises nothing.
        if (strategy->name() == "clblast" || !strategy->is_applicable(ops::matmul_problem(a, b), device())) continue;
        const auto once = [&] {
            const View out = View::make(device(), DType::f32, {1, m, n});
            ops::matmul(a, b, out);
            return values(Tensor(out));
        };
        CAPTURE(strategy->name());
        CHECK(once() == once());
    }
}

TEST_CASE("matmul: CLBlast allocates no buffers of its own") {
    if (small_cases()) return;
    const Environment set("DECLIVITY_MATMUL", "clblast"), pool("DECLIVITY_POOL", std::nullopt);
    const Device fresh = fresh_device();
    const auto zeroed_view = [&](const Shape& shape) {
        const View view = View::make(fresh, DType::f32, shape);
        ops::fill(view, 0.5);
        return view;
    };
    // Large enough for its indirect kernels, odd enough that these need padded copies; the second matrix of a batch has
    // another alignment than the first, and so may need more.
    const std::int64_t size = small_cases() ? 65 : 401;
    const View a = zeroed_view({2, size, size + 2}), b = ops::permuted(zeroed_view({2, size + 1, size + 2}), {0, 2, 1}),
               out = zeroed_view({2, size, size + 1});
    ops::matmul(a, b, out);
    const long before = opencl_calls().create_buffer;
    ops::matmul(a, b, out);
    fresh.synchronize();
    CHECK(opencl_calls().create_buffer == before);
    const auto result = values(Tensor(out));
    CHECK(difference({result.front(), result.back()},
                     {0.25 * static_cast<double>(size + 2), 0.25 * static_cast<double>(size + 2)},
                     tolerance(DType::f32, 400)) == "");
}

TEST_CASE("matmul: shape errors") {
    const View a = random_tensor({2, 3, 4}, 1).view(), b = random_tensor({2, 4, 5}, 2).view(),
               out = random_tensor({2, 3, 5}, 3).view();
    CHECK_THROWS_WITH_AS(ops::matmul(a, a, out),
                         "matmul: expected (batch, M, K) x (batch, K, N), got [2, 3, 4] x [2, 3, 4]", ShapeError);
    CHECK_THROWS_AS(ops::matmul(a, random_tensor({3, 4, 5}, 2).view(), out), ShapeError);
    CHECK_THROWS_AS(ops::matmul(ops::reshaped(a, {6, 4}), b, out), ShapeError);
    CHECK_THROWS_AS(ops::matmul(a, b, random_tensor({2, 5, 3}, 3).view()), ShapeError);
    CHECK_THROWS_AS(ops::matmul(a, b, ops::permuted(random_tensor({2, 5, 3}, 3).view(), {0, 2, 1})), ShapeError);
    const View integers = View::make(device(), DType::i32, {2, 3, 4});
    CHECK_THROWS_AS(ops::matmul(integers, b, out), TypeError);
    if (device().info().fp64)
        CHECK_THROWS_AS(ops::matmul(a, View::make(device(), DType::f64, {2, 4, 5}), out), TypeError);
    CHECK_THROWS_AS(ops::matmul(a, View::make(fresh_device(), DType::f32, {2, 4, 5}), out), DeviceError);
    const View square = random_tensor({1, 4, 4}, 1).view();
    CHECK_THROWS_AS(ops::matmul(square, random_tensor({1, 4, 4}, 1).view(), square), ValueError);
    const Environment wrong("DECLIVITY_MATMUL", "fast");
    CHECK_THROWS_WITH_AS(
        ops::matmul(a, b, out),
        ("DECLIVITY_MATMUL: expected one of " + names_of(ops::matmul_strategies()) + ", got \"fast\"").c_str(),
        ValueError);
    CHECK(names_of(ops::matmul_strategies()).starts_with("stream, packed, "));
}
