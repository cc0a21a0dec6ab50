// Attention with a KV cache and lengths in device memory, beyond the catalogue: both kernel styles, cache types, split
// keys, pages, compared with plain C++; nothing beyond the lengths is read; new keys are written at the right
// positions.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/attention.hpp>
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
    std::int64_t samples, heads, group, queries, keys, depth, width;
    std::vector<std::int64_t> lengths;
    CachedAttentionParameters options = {};
    bool small = false;
};

std::vector<Problem> problems() {
    std::vector<Problem> all{
        {"one of all", 1, 1, 1, 1, 1, 1, 1, {1}},
        {"odd", 2, 3, 1, 1, 21, 13, 7, {21, 5}, {}, true},
        {"a step of a model", 1, 6, 1, 1, 300, 64, 64, {211}},
        {"heads share keys, several queries", 3, 2, 4, 3, 70, 20, 24, {70, 3, 40}, {}, true},
        {"more rows than a piece of work has", 2, 2, 3, 9, 40, 16, 16, {40, 17}},
        {"splits of one head", 1, 1, 1, 1, 2000, 32, 32, {1733}},
        {"splits, some of them empty", 2, 1, 8, 1, 1500, 128, 128, {1500, 30}},
        {"splits of several heads, queries and samples", 2, 2, 2, 2, 700, 16, 16, {690, 333}, {.scale = 0.5}},
        {"splits of scores far from 0", 1, 3, 1, 1, 600, 16, 16, {600}, {.scale = 60}},
        {"no key counts", 2, 2, 1, 1, 9, 8, 8, {0, 4}, {}, true},
        {"lengths outside of the cache", 2, 2, 1, 2, 10, 8, 8, {-3, 100}},
        {"fewer keys than queries", 1, 2, 1, 5, 9, 8, 8, {3}},
        {"a window", 2, 2, 2, 2, 90, 16, 33, {90, 20}, {.window = 7}, true},
        {"not causal", 2, 2, 1, 4, 30, 16, 16, {30, 2}, {.is_causal = false}},
        {"a window around", 2, 2, 1, 4, 60, 16, 16, {60, 9}, {.is_causal = false, .scale = 0.3, .window = 5}},
        {"wide heads", 1, 2, 1, 1, 50, 256, 200, {44}},
    };
    if (small_cases()) std::erase_if(all, [](const Problem& item) { return !item.small; });
    return all;
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::vector<double> expected_result(const Problem& p, const std::vector<double>& q, const std::vector<double>& k,
                                    const std::vector<double>& v) {
    std::vector<double> y;
    const double scale = p.options.scale.value_or(1 / std::sqrt(static_cast<double>(p.depth)));
    for (std::int64_t b = 0; b < p.samples; ++b)
        for (std::int64_t head = 0; head < p.heads * p.group; ++head)
            for (std::int64_t i = 0; i < p.queries; ++i) {
                const std::int64_t length = std::min(std::max<std::int64_t>(p.lengths[at(b)], 0), p.keys),
                                   query_position = length - p.queries + i, kv_offset = b * p.heads + head / p.group;
                std::vector<double> sums(at(p.width));
                double largest = -std::numeric_limits<double>::infinity(), total = 0;
                std::vector<double> scores(at(p.keys), largest);
                for (std::int64_t j = 0; j < length; ++j) {
                    if (p.options.is_causal && j > query_position) continue;
                    if (p.options.window && std::abs(query_position - j) >= *p.options.window) continue;
                    double score = 0;
                    for (std::int64_t d = 0; d < p.depth; ++d)
                        score += q[at(((b * p.heads * p.group + head) * p.queries + i) * p.depth + d)] *
                                 k[at((kv_offset * p.keys + j) * p.depth + d)];
                    largest = std::max(largest, scores[at(j)] = scale * score);
                }
                for (std::int64_t j = 0; j < p.keys; ++j) {
                    if (std::isinf(scores[at(j)])) continue;
                    const double weight = std::exp(scores[at(j)] - largest);
                    total += weight;
                    for (std::int64_t e = 0; e < p.width; ++e)
                        sums[at(e)] += weight * v[at((kv_offset * p.keys + j) * p.width + e)];
                }
                for (const double sum : sums) y.push_back(total == 0 ? 0 : sum / total);
            }
    return y;
}

/// (B, H, S, D) with NaN beyond the lengths.
Tensor behind_lengths_nan(const Tensor& x, const Tensor& lengths) {
    const Tensor is_valid = reshape(arange(0, x.size(2), 1, {DType::i64}), {1, 1, x.size(2), 1}) <
                            reshape(lengths.to(DType::i64), {x.size(0), 1, 1, 1});
    return where(is_valid, x, std::numeric_limits<double>::quiet_NaN()).to(x.dtype()).clone();
}

struct Paged {
    Tensor pages, table;
};

/// The keys of all samples in pages of `page`, in arbitrary order.
Paged make_paged(const Tensor& x, std::int64_t page, DType index) {
    const std::int64_t pages_per_sample = (x.size(2) + page - 1) / page, samples = x.size(0);
    const Tensor padded = pad(x, {0, 0, 0, pages_per_sample * page - x.size(2)});
    const Tensor pages =
        reshape(permute(reshape(padded, {samples, x.size(1), pages_per_sample, page, x.size(3)}), {0, 2, 1, 3, 4}),
                {samples * pages_per_sample, x.size(1), page, x.size(3)});
    std::vector<std::int64_t> from(at(samples * pages_per_sample)), to(from.size());
    for (std::int64_t i = 0; i < samples * pages_per_sample; ++i) {
        to[at(i)] =
            (i * 11 + 3) % (samples * pages_per_sample);  // a permutation: no number of pages here has the factor 11
        from[at(to[at(i)])] = i;
    }
    return {index_select(pages, 0, Tensor::from(from, {samples * pages_per_sample})),
            reshape(Tensor::from(to, {samples * pages_per_sample}), {samples, pages_per_sample}).to(index)};
}

}  // namespace

TEST_CASE("cached attention: keys behind the length are not read") {
    // Equal scores: the result is the mean of the values of the first 2 or 3 keys.
    const Tensor q = tensor({0}, {1, 1, 1, 1}), k = tensor({1, 2, 3}, {1, 1, 3, 1}),
                 v = tensor({10, 20, 90}, {1, 1, 3, 1});
    CHECK(difference(cached_attention(q, k, v, int64_tensor({2}, {1})), {15}, {1e-5}) == "");
    CHECK(difference(cached_attention(q, k, v, int64_tensor({3}, {1})), {40}, {1e-4}) == "");
}

TEST_CASE("cached attention: values of both kernel styles and the decomposition match plain C++") {
    for (const Problem& p : problems())
        for (DType dtype : floats())
            for (const DType cache_dtype : {dtype, DType::f16, DType::bf16}) {
                if (dtype == DType::f64 && cache_dtype != dtype) continue;
                if (on_oclgrind() && (dtype == DType::f64 || cache_dtype == DType::bf16)) continue;
                CAPTURE(std::string(p.name));
                CAPTURE(name_of(dtype));
                CAPTURE(name_of(cache_dtype));
                const DType index = p.heads % 2 == 0 ? DType::i64 : DType::i32;
                const Tensor lengths = Tensor::from(p.lengths, {p.samples}).to(index);
                const Tensor q = random_tensor({p.samples, p.heads * p.group, p.queries, p.depth}, 1, dtype, -2, 2);
                const Tensor k = random_tensor({p.samples, p.heads, p.keys, p.depth}, 2, cache_dtype, -2, 2);
                const Tensor v = random_tensor({p.samples, p.heads, p.keys, p.width}, 3, cache_dtype, -2, 2);
                const std::vector<double> expected = expected_result(p, values(q), values(k), values(v));
                const Tolerance allowed = tolerance(dtype, static_cast<double>(p.keys), 4);
                {
                    const detail::DecompositionScope scope;
                    CHECK(difference(cached_attention(q, k, v, lengths, p.options), expected, allowed) == "");
                }
                const Tensor k_lost = behind_lengths_nan(k, lengths), v_lost = behind_lengths_nan(v, lengths);
                for (const KernelStyle style : kernel_styles()) {
                    CAPTURE(style == KernelStyle::simd);
                    const ops::KernelStyleScope scope(style);
                    CHECK(difference(cached_attention(q, k_lost, v_lost, lengths, p.options), expected, allowed) == "");
                    if (on_oclgrind() && !p.small) continue;
                    CachedAttentionParameters options = p.options;
                    const Paged paged_k = make_paged(k, 5, index), paged_v = make_paged(v, 5, index);
                    options.block_table = paged_k.table;
                    CHECK(difference(cached_attention(q, paged_k.pages, paged_v.pages, lengths, options), expected,
                                     allowed) == "");
                }
            }
}

TEST_CASE("cached attention: gradients match those of attention to the valid keys") {
    const Tensor lengths = Tensor::from<std::int64_t>({5, 5}, {2});
    Tensor q = random_tensor({2, 4, 2, 6}, 1).set_requires_grad(),
           k = random_tensor({2, 2, 8, 6}, 2).set_requires_grad(),
           v = random_tensor({2, 2, 8, 6}, 3).set_requires_grad();
    const Tensor g = random_tensor({2, 4, 2, 6}, 4);
    cached_attention(q, k, v, lengths).backward(g);
    Tensor other_q = q.detach().clone().set_requires_grad(),
           other_k = slice(k.detach(), 2, 0, 5).clone().set_requires_grad(),
           other_v = slice(v.detach(), 2, 0, 5).clone().set_requires_grad();
    scaled_dot_product_attention(other_q, other_k, other_v, {.is_causal = true, .enable_gqa = true, .query_offset = 3})
        .backward(g);
    CHECK(difference(q.grad(), values(other_q.grad()), {1e-5, 1e-5}) == "");
    CHECK(difference(slice(k.grad(), 2, 0, 5), values(other_k.grad()), {1e-5, 1e-5}) == "");
    CHECK(difference(slice(v.grad(), 2, 0, 5), values(other_v.grad()), {1e-5, 1e-5}) == "");
    CHECK(values(slice(k.grad(), 2, 5, 8)) == std::vector<double>(2 * 2 * 3 * 6));
}

TEST_CASE("cached attention: keys and values are appended") {
    for (const KernelStyle style : kernel_styles())
        for (const DType cache_dtype : {DType::f32, DType::f16, DType::bf16})
            for (const bool paged : {false, true}) {
                CAPTURE(paged);
                CAPTURE(name_of(cache_dtype));
                const ops::KernelStyleScope scope(style);
                const std::int64_t page = 3;
                const Tensor k = random_tensor({2, 2, 3, 5}, 1), v = random_tensor({2, 2, 3, 4}, 2);
                const Tensor lengths = Tensor::from<std::int64_t>({4, 7}, {2});  // sample 1 has room for only two
                const Tensor table = Tensor::from<std::int64_t>({3, 0, 2, 1}, {2, 2});
                const Tensor k_cache = full(paged ? Shape{4, 2, page, 5} : Shape{2, 2, 6, 5}, 9, {cache_dtype}).clone(),
                             v_cache = full(paged ? Shape{4, 2, page, 4} : Shape{2, 2, 6, 4}, 9, {cache_dtype}).clone();
                ops::attention_append(
                    k.view(), v.view(),
                    {{}, k_cache.view(), v_cache.view(), lengths.view(), paged ? table.view() : ops::View{}});
                const auto expected_cache = [&](const Tensor& x) {
                    Tensor expected = full({2, 2, 6, x.size(3)}, 9, {cache_dtype}).clone();
                    for (std::int64_t b = 0; b < 2; ++b)
                        for (std::int64_t t = 0; t < 3; ++t)
                            if (const std::int64_t j = b == 0 ? 1 + t : 4 + t; j < 6)
                                expected[{b, Slice(), j}] = x[{b, Slice(), t}].to(cache_dtype);
                    return values(expected);
                };
                const auto as_dense = [&](const Tensor& x) {
                    if (!paged) return x;
                    return reshape(permute(reshape(index_select(x, 0, flatten(table, 0)), {2, 2, 2, page, x.size(3)}),
                                           {0, 2, 1, 3, 4}),
                                   {2, 2, 6, x.size(3)});
                };
                CHECK(values(as_dense(k_cache)) == expected_cache(k));
                CHECK(values(as_dense(v_cache)) == expected_cache(v));
            }
}

TEST_CASE("cached attention: writes outside of the cache are dropped") {
    const Tensor k = random_tensor({3, 2, 3, 5}, 1), v = random_tensor({3, 2, 3, 4}, 2);
    for (const KernelStyle style : kernel_styles())
        for (const bool paged : {false, true}) {
            CAPTURE(paged);
            const ops::KernelStyleScope scope(style);
            // Two of three new keys of sample 0 are before the cache; sample 1's second page is one past the last;
            // sample 2's first page has a negative index.
            const Tensor lengths = Tensor::from<std::int64_t>({1, 5, 8}, {3});
            const Tensor table = Tensor::from<std::int64_t>({2, 3, 0, 4, -1, 1}, {3, 2});
            const Shape shape = paged ? Shape{6, 2, 3, 5} : Shape{5, 2, 6, 5};
            const Tensor all_k = full(shape, 9).clone(), all_v = full(shape, 9).clone();
            const auto inner = [&](const Tensor& all, std::int64_t width) {
                return slice(slice(all, 0, 1, paged ? 5 : 4), 3, 0, width);
            };
            ops::attention_append(k.view(), v.view(),
                                  {{},
                                   inner(all_k, 5).view(),
                                   inner(all_v, 4).view(),
                                   lengths.view(),
                                   paged ? table.view() : ops::View{}});
            const auto expected = [&](const Tensor& x) {
                Tensor result = full(shape, 9).clone();
                for (std::int64_t b = 0; b < 3; ++b)
                    for (std::int64_t t = 0; t < 3; ++t) {
                        const std::int64_t j = std::vector<std::int64_t>{1, 5, 8}[at(b)] - 3 + t;
                        if (j < 0 || j >= 6) continue;
                        const std::int64_t page = std::vector<std::int64_t>{2, 3, 0, 4, -1, 1}[at(b * 2 + j / 3)];
                        if (paged && (page < 0 || page >= 4)) continue;
                        result[{1 + (paged ? page : b), Slice(), paged ? j % 3 : j, Slice(0, x.size(3))}] =
                            x[{b, Slice(), t}];
                    }
                return values(result);
            };
            CHECK(values(all_k) == expected(k));
            CHECK(values(all_v) == expected(v));
        }
}

TEST_CASE("cached attention: a captured step reads the current lengths") {
    const Tensor q = random_tensor({1, 2, 1, 8}, 1), k = random_tensor({1, 2, 40, 8}, 2),
                 v = random_tensor({1, 2, 40, 8}, 3);
    Tensor lengths = Tensor::from<std::int64_t>({3}, {1});
    auto step = capture([&](const Tensor& x) {
        lengths += 1;
        return cached_attention(x, k, v, lengths);
    });
    for (std::int64_t length = 4; length < 12; ++length) {
        const Tensor y = step(q);
        const Tensor expected = scaled_dot_product_attention(q, slice(k, 2, 0, length), slice(v, 2, 0, length));
        CHECK(difference(y, values(expected), {1e-5, 1e-5}) == "");
    }
}

TEST_CASE("cached attention: shape errors") {
    const Tensor q = zeros({2, 4, 1, 8}), k = zeros({2, 2, 9, 8}), v = zeros({2, 2, 9, 6}),
                 lengths = zeros({2}, {DType::i64});
    CHECK(cached_attention(q, k, v, lengths).shape() == Shape{2, 4, 1, 6});
    CHECK_THROWS_AS((void)cached_attention(q, k, v, zeros({3}, {DType::i64})), ShapeError);
    CHECK_THROWS_AS((void)cached_attention(q, k, v, zeros({2})), TypeError);
    CHECK_THROWS_AS((void)cached_attention(q, zeros({3, 2, 9, 8}), zeros({3, 2, 9, 6}), lengths), ShapeError);
    CHECK_THROWS_AS((void)cached_attention(q, zeros({2, 3, 9, 8}), zeros({2, 3, 9, 6}), lengths), ShapeError);
    CHECK_THROWS_AS((void)cached_attention(q, k.to(DType::f16), v, lengths), TypeError);
    CHECK_THROWS_AS((void)cached_attention(q.to(DType::f16), k, v, lengths), TypeError);
    CHECK_THROWS_AS((void)cached_attention(q, k, v, lengths, {.window = 0}), ValueError);
    CHECK_THROWS_AS((void)cached_attention(q, k, v, lengths, {.block_table = zeros({2, 1}, {DType::i32})}), TypeError);
    CHECK_THROWS_AS((void)cached_attention(q, k, v, lengths, {.block_table = zeros({3, 1}, {DType::i64})}), ShapeError);
}
