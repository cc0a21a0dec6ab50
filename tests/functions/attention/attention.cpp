// Attention beyond the catalogue: lengths of several blocks, grouped heads, masks, windows, slopes and dropout, both
// kernel styles, compared with the decomposition; memory usage.
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct Problem {
    const char* name;
    Shape q, k;
    std::int64_t width;  // size of a value
    std::function<AttentionParameters(DType)> options = [](DType) { return AttentionParameters{}; };
    bool small = false;
};

std::vector<Problem> problems() {
    const auto same_for_all_types = [](AttentionParameters options) { return [options](DType) { return options; }; };
    const auto masked = [](const Shape& shape) {
        return [shape](DType) { return AttentionParameters{.attn_mask = random_tensor(shape, 9) > -0.2}; };
    };
    std::vector<Problem> all{
        {"one of all", {1, 1, 1, 1}, {1, 1, 1, 1}, 1},
        {"odd", {2, 3, 5, 13}, {2, 3, 21, 13}, 7, same_for_all_types({}), true},
        {"causal", {1, 2, 130, 64}, {1, 2, 130, 64}, 64, same_for_all_types({.is_causal = true})},
        {"heads share keys, queries at the end",
         {2, 6, 9, 20},
         {2, 2, 25, 20},
         24,
         same_for_all_types({.is_causal = true, .enable_gqa = true, .query_offset = 16}),
         true},
        {"one query of many heads", {3, 8, 1, 16}, {3, 1, 100, 16}, 16, same_for_all_types({.enable_gqa = true})},
        {"a window behind", {1, 2, 150, 32}, {1, 2, 150, 32}, 32, same_for_all_types({.is_causal = true, .window = 9})},
        {"a window around", {2, 1, 150, 33}, {2, 1, 140, 33}, 31, same_for_all_types({.window = 17})},
        {"queries that see no key", {1, 2, 50, 8}, {1, 2, 20, 8}, 8, same_for_all_types({.window = 3}), true},
        {"padding", {2, 2, 50, 32}, {2, 2, 60, 32}, 32, masked({2, 1, 1, 60})},
        {"a mask of all scores", {2, 2, 20, 8}, {2, 2, 30, 8}, 8, masked({2, 2, 20, 30}), true},
        {"a mask for all samples", {2, 3, 50, 32}, {2, 3, 60, 32}, 32, masked({50, 60})},
        {"slopes",
         {2, 4, 50, 32},
         {2, 4, 60, 32},
         32,
         [](DType dtype) {
             return AttentionParameters{
                 .is_causal = true, .query_offset = 10, .alibi_slopes = random_tensor({4}, 8, dtype, 0, 1)};
         }},
        {"an added mask, heads that share keys",
         {2, 4, 50, 32},
         {2, 2, 60, 32},
         32,
         [](DType dtype) {
             return AttentionParameters{.attn_mask = random_tensor({4, 50, 60}, 8, dtype), .enable_gqa = true};
         }},
        {"dropout", {2, 4, 50, 32}, {2, 2, 61, 32}, 32, same_for_all_types({.dropout_p = 0.3, .enable_gqa = true})},
        {"everything dropped", {1, 2, 5, 8}, {1, 2, 7, 8}, 8, same_for_all_types({.dropout_p = 1}), true},
        {"a scale below 0", {1, 1, 40, 16}, {1, 1, 70, 16}, 100, same_for_all_types({.scale = -0.3})},
        {"wide heads", {1, 1, 70, 128}, {1, 1, 90, 128}, 120, same_for_all_types({.is_causal = true})},
        {"three axes", {3, 10, 8}, {3, 12, 8}, 4, same_for_all_types({}), true},
        {"two axes", {10, 8}, {12, 8}, 4},
        {"axes that stretch", {2, 1, 3, 10, 8}, {1, 2, 3, 12, 8}, 8},
    };
    if (small_cases()) std::erase_if(all, [](const Problem& item) { return !item.small; });
    if (on_oclgrind()) all.resize(2);
    return all;
}

Shape value_shape(Shape k, std::int64_t width) {
    k[-1] = width;
    return k;
}

struct Outcome {
    Tensor y;
    std::vector<Tensor> gradients;
};

Outcome run(const Problem& problem, DType dtype, const std::vector<Tensor>& operands) {
    std::vector<Tensor> leaves;
    for (const Tensor& operand : operands) leaves.push_back(operand.clone().set_requires_grad());
    manual_seed(4);
    Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], problem.options(dtype));
    y.backward(random_tensor(y.shape(), 5, dtype));
    return {y.detach(), {leaves[0].grad(), leaves[1].grad(), leaves[2].grad()}};
}

/// (B, heads, L, D) with memory layout (B, L, heads, D) and padding between.
Tensor laid_by_rows(const Tensor& x) {
    const Tensor rows = permute(x, {0, 2, 1, 3}).clone();
    const Tensor doubled_rows = concat({rows, rows}, 3);
    return permute(slice(doubled_rows, 3, 0, x.size(3)), {0, 2, 1, 3}).detach();
}

}  // namespace

TEST_CASE("attention: the mean of the values, weighted by the softmax of the scores") {
    // Scores 0 and log 3 give weights 1/4 and 3/4: 0 / 4 + 8 * 3 / 4.
    const Tensor q = tensor({1}, {1, 1}), k = tensor({0, std::log(3.0)}, {2, 1}), v = tensor({0, 8}, {2, 1});
    CHECK(difference(scaled_dot_product_attention(q, k, v, {.scale = 1}), {6}, {1e-5}) == "");
    // A bool mask excludes keys.
    const Tensor second = tensor({0, 1}, {1, 2}, DType::boolean);
    CHECK(difference(scaled_dot_product_attention(q, k, v, {.attn_mask = second}), {8}, {1e-5}) == "");
}

TEST_CASE("attention: without a heads axis the result has none") {
    const Tensor q = Tensor::from<float>({0, 0, 0, 0}, {2, 2}), k = Tensor::from<float>({1, 2, 3, 4}, {2, 2}),
                 v = Tensor::from<float>({10, 20}, {2, 1});
    const Tensor y = scaled_dot_product_attention(q, k, v, {.is_causal = true});
    CHECK(y.shape() == Shape{2, 1});
    CHECK(y.to_vector<float>() == std::vector<float>{10, 15});
}

TEST_CASE("attention: values and gradients of both kernel styles match the decomposition") {
    std::vector<DType> types = floats();
    types.insert(types.end(), {DType::f16, DType::bf16});
    if (on_oclgrind()) types = {DType::f32};
    for (const Problem& problem : problems())
        for (const DType dtype : types) {
            CAPTURE(std::string(problem.name));
            CAPTURE(name_of(dtype));
            const std::vector<Tensor> operands{random_tensor(problem.q, 1, dtype, -2, 2),
                                               random_tensor(problem.k, 2, dtype, -2, 2),
                                               random_tensor(value_shape(problem.k, problem.width), 3, dtype, -2, 2)};
            const Outcome expected = [&] {
                const detail::DecompositionScope scope;
                return run(problem, dtype, operands);
            }();
            for (const KernelStyle style : kernel_styles()) {
                CAPTURE(style == KernelStyle::simd);
                const ops::KernelStyleScope scope(style);
                const Outcome got = run(problem, dtype, operands);
                Tolerance allowed = tolerance(dtype, static_cast<double>(problem.k[-2]), 4);
                // The gradient uses y as it was rounded.
                if (is_16bit_float(dtype))
                    allowed = {dtype == DType::f16 ? 0.01 : 0.08, dtype == DType::f16 ? 0.004 : 0.03};
                CHECK(difference(got.y, values(expected.y), allowed) == "");
                for (std::size_t i = 0; i < 3; ++i)
                    CHECK(difference(got.gradients[i], values(expected.gradients[i]), allowed) == "");
            }
        }
}

TEST_CASE("attention: operands stored by positions, and without contiguous rows") {
    const Tensor q = random_tensor({2, 3, 40, 16}, 1), k = random_tensor({2, 3, 70, 16}, 2),
                 v = random_tensor({2, 3, 70, 16}, 3);
    const auto reversed = [](const Tensor& x) { return permute(permute(x, {3, 2, 1, 0}).clone(), {3, 2, 1, 0}); };
    if (on_oclgrind()) return;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const std::vector<double> expected = values(scaled_dot_product_attention(q, k, v));
        CHECK(values(scaled_dot_product_attention(laid_by_rows(q), laid_by_rows(k), laid_by_rows(v))) == expected);
        CHECK(values(scaled_dot_product_attention(reversed(q), reversed(k), reversed(v))) == expected);
    }
}

TEST_CASE("attention: large scores do not overflow") {
    if (on_oclgrind()) return;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Tensor q = tensor({40, -40}, {2, 1}), k = tensor({30, -30, 29}, {3, 1}), v = tensor({1, 2, 3}, {3, 1});
        // Scores 1200 and 1160 of query 0: only the first key counts; for query 1 the second.
        CHECK(difference(scaled_dot_product_attention(q, k, v), {1, 2}, {1e-6, 1e-6}) == "");
        const Tensor with_nan = tensor({1, NAN}, {2, 1});
        const std::vector<double> got = values(scaled_dot_product_attention(with_nan, k, v));
        CHECK(std::isfinite(got[0]));
        CHECK(std::isnan(got[1]));
    }
}

TEST_CASE("attention: memory grows linearly with the length") {
    if (small_cases()) return;
    for (const KernelStyle style : kernel_styles()) {
        if (style != ops::kernel_style_of(device())) continue;
        const auto peak = [](std::int64_t length) {
            const Tensor q = random_tensor({1, 2, length, 16}, 1).set_requires_grad();
            const Tensor g = random_tensor({1, 2, length, 16}, 2);
            device().synchronize();
            device().reset_peak_memory();
            const std::uint64_t before = device().memory().in_use;
            scaled_dot_product_attention(q, q, q, {.is_causal = true}).backward(g);
            (void)q.grad().view();
            device().synchronize();
            return static_cast<double>(device().memory().peak - before);
        };
        const double short_peak = peak(512), long_peak = peak(2048);
        CHECK(long_peak < 4.5 * short_peak);
        CHECK(long_peak < 2048.0 * 2048 * 4);  // a score matrix alone would take twice that
    }
}

TEST_CASE("attention: a mask that requires a gradient") {
    const Tensor q = random_tensor({1, 2, 6, 4}, 1), k = random_tensor({1, 2, 7, 4}, 2),
                 v = random_tensor({1, 2, 7, 4}, 3);
    Tensor mask = random_tensor({2, 1, 7}, 4).set_requires_grad();
    sum(square(scaled_dot_product_attention(q, k, v, {.attn_mask = mask}))).backward();
    const std::vector<double> got = values(mask.grad());
    const double step = 1e-2;
    for (std::int64_t at = 0; at < mask.numel(); ++at) {
        const auto loss_at = [&](double change) {
            std::vector<double> all = values(mask);
            all[static_cast<std::size_t>(at)] += change;
            return values(
                sum(square(scaled_dot_product_attention(q, k, v, {.attn_mask = tensor(all, mask.shape())}))))[0];
        };
        CHECK(got[static_cast<std::size_t>(at)] ==
              doctest::Approx((loss_at(step) - loss_at(-step)) / (2 * step)).epsilon(2e-2).scale(0.05));
    }
}

TEST_CASE("attention: no keys, no queries") {
    CHECK(values(scaled_dot_product_attention(zeros({1, 2, 3, 4}), zeros({1, 2, 0, 4}), zeros({1, 2, 0, 5}))) ==
          std::vector<double>(30, 0));
    CHECK(scaled_dot_product_attention(zeros({1, 2, 0, 4}), zeros({1, 2, 3, 4}), zeros({1, 2, 3, 5})).shape() ==
          Shape{1, 2, 0, 5});
    const Tensor none = zeros({2, 0, 3, 4}),
                 masked = scaled_dot_product_attention(none, none, none, {.attn_mask = ones({3, 3}, {DType::boolean})});
    CHECK(masked.shape() == none.shape());
    CHECK(values(masked).empty());
    const Tensor query = random_tensor({1, 2, 3, 4}, 1).set_requires_grad();
    const Tensor y = scaled_dot_product_attention(query, zeros({1, 2, 0, 4}), zeros({1, 2, 0, 5}));
    CHECK(values(grad({sum(y)}, {query})[0]) == std::vector<double>(24, 0));
}

TEST_CASE("attention: shape errors name the argument") {
    const Tensor q = zeros({1, 4, 3, 8}), k = zeros({1, 4, 5, 8}), keys_2_heads = zeros({1, 3, 5, 8});
    const auto check_error = [&](const std::function<void()>& call, const std::string& message) {
        try {
            call();
            FAIL_CHECK("nothing was thrown; expected: ", message);
        } catch (const Error& error) {
            INFO(std::string(error.what()));
            CHECK(std::string(error.what()).find(message) != std::string::npos);
            CHECK(std::string(error.what()).starts_with("scaled_dot_product_attention: "));
        }
    };
    const auto call = [&](const Tensor& query, const Tensor& key, const Tensor& value, AttentionParameters options) {
        return [=] { (void)scaled_dot_product_attention(query, key, value, options); };
    };
    check_error(call(q, zeros({1, 4, 5, 7}), k, {}), "the same size along the last axis");
    check_error(call(q, k, zeros({1, 4, 6, 8}), {}), "as many values as keys");
    check_error(call(q, keys_2_heads, keys_2_heads, {}), "");
    check_error(call(q, keys_2_heads, keys_2_heads, {.enable_gqa = true}), "heads of key and value that divide");
    check_error(call(zeros({3, 8}), zeros({5, 8}), zeros({5, 8}), {.enable_gqa = true}), "enable_gqa");
    check_error(call(zeros({8}), k, k, {}), "query of shape (..., L, D)");
    check_error(call(q, k.to(DType::f16), k, {}), "key");
    check_error(call(q, k, k, {.dropout_p = 1.5}), "dropout_p in [0, 1]");
    check_error(call(q, k, k, {.window = 0}), "a window of at least 1");
    check_error(call(q, k, k, {.scale = NAN}), "a finite scale");
    check_error(call(q, k, k, {.attn_mask = zeros({3, 5}, {DType::i32})}), "attn_mask");
    check_error(call(q, k, k, {.attn_mask = zeros({4, 5})}), "");
    check_error(call(q, k, k, {.attn_mask = zeros({2, 1, 3, 5})}), "attn_mask that broadcasts to [1, 4, 3, 5]");
    check_error(call(q, k, k, {.alibi_slopes = zeros({3})}), "alibi_slopes");
    check_error(call(q.to(DType::i32), k, k, {}), "query");
}
