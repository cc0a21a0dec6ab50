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

std::vector<double> reference(const Problem& p, const std::vector<double>& q, const std::vector<double>& k,
                              const std::vector<double>& v) {
    std::vector<double> y;
    const double scale = p.options.scale.value_or(1 / std::sqrt(static_cast<double>(p.depth)));
    for (std::int64_t b = 0; b < p.samples; ++b)
        for (std::int64_t head = 0; head < p.heads * p.group; ++head)
            for (std::int64_t i = 0; i < p.queries; ++i) {
                const std::int64_t length = std::min(std::max<std::int64_t>(p.lengths[at(b)], 0), p.keys),
                                   stands = length - p.queries + i, of = b * p.heads + head / p.group;
                std::vector<double> sums(at(p.width));
                double most = -std::numeric_limits<double>::infinity(), total = 0;
                std::vector<double> scores(at(p.keys), most);
                for (std::int64_t j = 0; j < length; ++j) {
                    if (p.options.is_causal && j > stands) continue;
                    if (p.options.window && std::abs(stands - j) >= *p.options.window) continue;
                    double score = 0;
                    for (std::int64_t d = 0; d < p.depth; ++d)
                        score += q[at(((b * p.heads * p.group + head) * p.queries + i) * p.depth + d)] *
                                 k[at((of * p.keys + j) * p.depth + d)];
                    most = std::max(most, scores[at(j)] = scale * score);
                }
                for (std::int64_t j = 0; j < p.keys; ++j) {
                    if (std::isinf(scores[at(j)])) continue;
                    const double weight = std::exp(scores[at(j)] - most);
                    total += weight;
                    for (std::int64_t e = 0; e < p.width; ++e)
                        sums[at(e)] += weight * v[at((of * p.keys + j) * p.width + e)];
                }
                for (const double sum : sums) y.push_back(total == 0 ? 0 : sum / total);
            }
    return y;
}

/// (B, H, S, D) with NaN beyond the lengths.
Tensor behind_lengths_nan(const Tensor& x, const Tensor& lengths) {
    const Tensor seen = reshape(arange(0, x.size(2), 1, {DType::i64}), {1, 1, x.size(2), 1}) <
                        reshape(lengths.to(DType::i64), {x.size(0), 1, 1, 1});
    return where(seen, x, std::numeric_limits<double>::quiet_NaN()).to(x.dtype()).clone();
}

struct Paged {
    Tensor pages, table;
};

/// The keys of all samples in pages of `page`, in arbitrary order.
Paged paged(const Tensor& x, std::int64_t page, DType index) {
    const std::int64_t each = (x.size(2) + page - 1) / page, samples = x.size(0);
    const Tensor whole = pad(x, {0, 0, 0, each * page - x.size(2)});
    const Tensor pages = reshape(permute(reshape(whole, {samples, x.size(1), each, page, x.size(3)}), {0, 2, 1, 3, 4}),
                                 {samples * each, x.size(1), page, x.size(3)});
    std::vector<std::int64_t> from(at(samples * each)), to(from.size());
    for (std::int64_t i = 0; i < samples * each; ++i) {
        to[at(i)] = (i * 11 + 3) % (samples * each);  // a permutation: no number of pages here has the factor 11
        from[at(to[at(i)])] = i;
    }
    return {index_select(pages, 0, Tensor::from(from, {samples * each})),
            reshape(Tensor::from(to, {samples * each}), {samples, each}).to(index)};
}

}  // namespace

TEST_CASE("cached attention: values of both kernel styles and the decomposition match plain C++") {
    for (const Problem& p : problems())
        for (DType dtype : floats())
            for (const DType kept : {dtype, DType::f16, DType::bf16}) {
                if (dtype == DType::f64 && kept != dtype) continue;
                if (on_oclgrind() && (dtype == DType::f64 || kept == DType::bf16)) continue;
                CAPTURE(std::string(p.name));
                CAPTURE(name_of(dtype));
                CAPTURE(name_of(kept));
                const DType index = p.heads % 2 == 0 ? DType::i64 : DType::i32;
                const Tensor lengths = Tensor::from(p.lengths, {p.samples}).to(index);
                const Tensor q = random_tensor({p.samples, p.heads * p.group, p.queries, p.depth}, 1, dtype, -2, 2);
                const Tensor k = random_tensor({p.samples, p.heads, p.keys, p.depth}, 2, kept, -2, 2);
                const Tensor v = random_tensor({p.samples, p.heads, p.keys, p.width}, 3, kept, -2, 2);
                const std::vector<double> wanted = reference(p, values(q), values(k), values(v));
                const Tolerance allowed = tolerance(dtype, static_cast<double>(p.keys), 4);
                {
                    const detail::DecompositionScope scope;
                    CHECK(difference(cached_attention(q, k, v, lengths, p.options), wanted, allowed) == "");
                }
                const Tensor k_lost = behind_lengths_nan(k, lengths), v_lost = behind_lengths_nan(v, lengths);
                for (const KernelStyle style : kernel_styles()) {
                    CAPTURE(style == KernelStyle::simd);
                    const ops::KernelStyleScope scope(style);
                    CHECK(difference(cached_attention(q, k_lost, v_lost, lengths, p.options), wanted, allowed) == "");
                    if (on_oclgrind() && !p.small) continue;
                    CachedAttentionParameters options = p.options;
                    const Paged of_k = paged(k, 5, index), of_v = paged(v, 5, index);
                    options.block_table = of_k.table;
                    CHECK(difference(cached_attention(q, of_k.pages, of_v.pages, lengths, options), wanted, allowed) ==
                          "");
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
        for (const DType kept : {DType::f32, DType::f16, DType::bf16})
            for (const bool in_pages : {false, true}) {
                CAPTURE(in_pages);
                CAPTURE(name_of(kept));
                const ops::KernelStyleScope scope(style);
                const std::int64_t page = 3;
                const Tensor k = random_tensor({2, 2, 3, 5}, 1), v = random_tensor({2, 2, 3, 4}, 2);
                const Tensor lengths = Tensor::from<std::int64_t>({4, 7}, {2});  // sample 1 has room for only two
                const Tensor table = Tensor::from<std::int64_t>({3, 0, 2, 1}, {2, 2});
                const Tensor to_k = full(in_pages ? Shape{4, 2, page, 5} : Shape{2, 2, 6, 5}, 9, {kept}).clone(),
                             to_v = full(in_pages ? Shape{4, 2, page, 4} : Shape{2, 2, 6, 4}, 9, {kept}).clone();
                ops::attention_append(
                    k.view(), v.view(),
                    {{}, to_k.view(), to_v.view(), lengths.view(), in_pages ? table.view() : ops::View{}});
                const auto placed = [&](const Tensor& x) {
                    Tensor wanted = full({2, 2, 6, x.size(3)}, 9, {kept}).clone();
                    for (std::int64_t b = 0; b < 2; ++b)
                        for (std::int64_t t = 0; t < 3; ++t)
                            if (const std::int64_t j = b == 0 ? 1 + t : 4 + t; j < 6)
                                wanted[{b, Slice(), j}] = x[{b, Slice(), t}].to(kept);
                    return values(wanted);
                };
                const auto kept_as = [&](const Tensor& x) {
                    if (!in_pages) return x;
                    return reshape(permute(reshape(index_select(x, 0, flatten(table, 0)), {2, 2, 2, page, x.size(3)}),
                                           {0, 2, 1, 3, 4}),
                                   {2, 2, 6, x.size(3)});
                };
                CHECK(values(kept_as(to_k)) == placed(k));
                CHECK(values(kept_as(to_v)) == placed(v));
            }
}

TEST_CASE("cached attention: writes outside of the cache are dropped") {
    const Tensor k = random_tensor({3, 2, 3, 5}, 1), v = random_tensor({3, 2, 3, 4}, 2);
    for (const KernelStyle style : kernel_styles())
        for (const bool in_pages : {false, true}) {
            CAPTURE(in_pages);
            const ops::KernelStyleScope scope(style);
            // Two of three new keys of sample 0 are before the cache; sample 1's second page is one past the last;
            // sample 2's first page has a negative index.
            const Tensor lengths = Tensor::from<std::int64_t>({1, 5, 8}, {3});
            const Tensor table = Tensor::from<std::int64_t>({2, 3, 0, 4, -1, 1}, {3, 2});
            const Shape shape = in_pages ? Shape{6, 2, 3, 5} : Shape{5, 2, 6, 5};
            const Tensor all_k = full(shape, 9).clone(), all_v = full(shape, 9).clone();
            const auto inner = [&](const Tensor& all, std::int64_t width) {
                return slice(slice(all, 0, 1, in_pages ? 5 : 4), 3, 0, width);
            };
            ops::attention_append(k.view(), v.view(),
                                  {{},
                                   inner(all_k, 5).view(),
                                   inner(all_v, 4).view(),
                                   lengths.view(),
                                   in_pages ? table.view() : ops::View{}});
            const auto wanted = [&](const Tensor& x) {
                Tensor made = full(shape, 9).clone();
                for (std::int64_t b = 0; b < 3; ++b)
                    for (std::int64_t t = 0; t < 3; ++t) {
                        const std::int64_t j = std::vector<std::int64_t>{1, 5, 8}[at(b)] - 3 + t;
                        if (j < 0 || j >= 6) continue;
                        const std::int64_t page = std::vector<std::int64_t>{2, 3, 0, 4, -1, 1}[at(b * 2 + j / 3)];
                        if (in_pages && (page < 0 || page >= 4)) continue;
                        made[{1 + (in_pages ? page : b), Slice(), in_pages ? j % 3 : j, Slice(0, x.size(3))}] =
                            x[{b, Slice(), t}];
                    }
                return values(made);
            };
            CHECK(values(all_k) == wanted(k));
            CHECK(values(all_v) == wanted(v));
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
        const Tensor wanted = scaled_dot_product_attention(q, slice(k, 2, 0, length), slice(v, 2, 0, length));
        CHECK(difference(y, values(wanted), {1e-5, 1e-5}) == "");
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
