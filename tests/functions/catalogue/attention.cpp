// Attention as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {
namespace {

/// The bias of attention for the score of query i of a head and key j of a sample: -infinity for masked keys.
using AttentionBias =
    std::function<double(std::int64_t b, std::int64_t head, std::int64_t i, std::int64_t j, const Columns& in)>;

/// q (B, G H, Lq, D), k (B, H, Lk, D), v (B, H, Lk, E).
Values attention_reference(const Shape& q, const Shape& k, const Shape& v, double scale, const Columns& in,
                           const AttentionBias& bias) {
    const std::int64_t group = q[1] / k[1], keys = k[2];
    return table({q[0], q[1], q[2], v[3]}, [&](const Dims& at) {
        const std::int64_t b = at[0], head = at[1], i = at[2];
        Values scores(static_cast<std::size_t>(keys));
        double largest = -std::numeric_limits<double>::infinity(), total = 0, sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
            double score = bias(b, head, i, j, in);
            for (std::int64_t d = 0; d < q[3]; ++d)
                score += scale * in[0][flat_index(q, {b, head, i, d})] * in[1][flat_index(k, {b, head / group, j, d})];
            scores[static_cast<std::size_t>(j)] = score;
            largest = std::max(largest, score);
        }
        if (std::isinf(largest)) return 0.0;
        for (std::int64_t j = 0; j < keys; ++j) {
            const double weight = std::exp(scores[static_cast<std::size_t>(j)] - largest);
            total += weight;
            sum += weight * in[2][flat_index(v, {b, head / group, j, at[3]})];
        }
        return sum / total;
    });
}

void add_attention(std::vector<Case>& all) {
    constexpr double hidden = -std::numeric_limits<double>::infinity();
    constexpr auto* name = "scaled_dot_product_attention";
    const Shape q{2, 3, 5, 7}, k{2, 3, 6, 7}, v{2, 3, 6, 4};
    all.push_back(
        {.name = name,
         .inputs = {{q}, {k}, {v}, {{2, 1, 5, 6}, 0, 1, Kind::boolean}},
         .call =
             [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {.attn_mask = in[3]}); },
         .reference =
             [=](const Columns& in, DType) {
                 return attention_reference(
                     q, k, v, 1 / std::sqrt(7.0), in,
                     [](std::int64_t b, std::int64_t, std::int64_t i, std::int64_t j, const Columns& columns) {
                         return columns[3][flat_index({2, 1, 5, 6}, {b, 0, i, j})] != 0 ? 0 : hidden;
                     });
             },
         .terms = 20,
         .gradient_tolerance = 1e-5,
         .first_optional = 3});
    const Shape grouped{1, 4, 5, 3}, few{1, 2, 8, 3};
    all.push_back({.name = name,
                   .inputs = {{grouped}, {few}, {few}, {{4}, 0, 1, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           return scaled_dot_product_attention(in[0], in[1], in[2],
                                                               {.is_causal = true,
                                                                .scale = 0.7,
                                                                .enable_gqa = true,
                                                                .window = 4,
                                                                .query_offset = 2,
                                                                .alibi_slopes = in[3]});
                       },
                   .reference =
                       [=](const Columns& in, DType) {
                           return attention_reference(grouped, few, few, 0.7, in,
                                                      [](std::int64_t, std::int64_t head, std::int64_t i,
                                                         std::int64_t j, const Columns& columns) {
                                                          const std::int64_t distance = i + 2 - j;
                                                          return distance < 0 || distance > 3
                                                                     ? hidden
                                                                     : -columns[3][static_cast<std::size_t>(head)] *
                                                                           static_cast<double>(distance);
                                                      });
                       },
                   .terms = 20,
                   .gradient_tolerance = 1e-5,
                   .first_optional = 3});
    const Shape query_shape_2d{4, 6}, other{9, 6};
    all.push_back(
        {.name = name,
         .inputs = {{query_shape_2d}, {other}, {other}, {{4, 9}}},
         .call =
             [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {.attn_mask = in[3]}); },
         .reference =
             [=](const Columns& in, DType) {
                 return attention_reference(
                     {1, 1, 4, 6}, {1, 1, 9, 6}, {1, 1, 9, 6}, 1 / std::sqrt(6.0), in,
                     [](std::int64_t, std::int64_t, std::int64_t i, std::int64_t j, const Columns& columns) {
                         return columns[3][flat_index({4, 9}, {i, j})];
                     });
             },
         .terms = 20,
         .gradient_tolerance = 1e-5,
         .first_optional = 3});
    const Shape query_shape{2, 4, 2, 6}, cache{2, 2, 9, 6};
    all.push_back(
        {.name = "cached_attention",
         .inputs = {{query_shape}, {cache}, {cache}, {{2}, 2, 10, Kind::label}},
         .call =
             [](const Tensors& in) {
                 return cached_attention(in[0], in[1], in[2], in[3], {.scale = 0.8, .window = 4});
             },
         .reference =
             [=](const Columns& in, DType) {
                 return attention_reference(
                     query_shape, cache, cache, 0.8, in,
                     [](std::int64_t b, std::int64_t, std::int64_t i, std::int64_t j, const Columns& columns) {
                         const auto distance =
                             static_cast<std::int64_t>(columns[3][static_cast<std::size_t>(b)]) - 2 + i - j;
                         return distance < 0 || distance > 3 ? hidden : 0;
                     });
             },
         .terms = 20,
         .gradient_tolerance = 1e-5});
}

void add_position_embeddings(std::vector<Case>& all) {
    for (const bool interleaved : {false, true})
        all.push_back(
            {.name = "rotary_embedding",
             .inputs = {{{2, 3, 5, 7}}},
             .call =
                 [interleaved](const Tensors& in) {
                     return rotary_embedding(
                         in[0], {.dims = 6, .base = 50, .scale = 0.5, .interleaved = interleaved, .offset = 2});
                 },
             .reference =
                 [interleaved](const Columns& in, DType) {
                     const Shape shape{2, 3, 5, 7};
                     return table(shape, [&](const Dims& at) {
                         const std::int64_t d = at[3], pair = interleaved ? d / 2 : d % 3;
                         const bool second = interleaved ? d % 2 != 0 : d >= 3;
                         const auto element = [&](std::int64_t e) {
                             return in[0][flat_index(shape, {at[0], at[1], at[2], e})];
                         };
                         if (d == 6) return element(6);
                         const std::int64_t partner = interleaved ? (second ? d - 1 : d + 1) : (second ? d - 3 : d + 3);
                         const double angle = 0.5 * static_cast<double>(at[2] + 2) *
                                              std::pow(50.0, -2.0 * static_cast<double>(pair) / 6);
                         return element(d) * std::cos(angle) + (second ? 1 : -1) * element(partner) * std::sin(angle);
                     });
                 }});
    all.push_back({.name = "rotary_embedding",
                   .inputs = {{{2, 3, 4}}, {{2, 3}, 0, 100, Kind::label}},
                   .call = [](const Tensors& in) { return rotary_embedding(in[0], {.positions = in[1]}); },
                   .reference =
                       [](const Columns& in, DType) {
                           const Shape shape{2, 3, 4};
                           return table(shape, [&](const Dims& at) {
                               const double angle = in[1][flat_index({2, 3}, {at[0], at[1]})] *
                                                    std::pow(1e4, -2.0 * static_cast<double>(at[2] % 2) / 4);
                               const double value = in[0][flat_index(shape, {at[0], at[1], at[2]})],
                                            rotated = in[0][flat_index(shape, {at[0], at[1], (at[2] + 2) % 4})];
                               return value * std::cos(angle) + (at[2] < 2 ? -1 : 1) * rotated * std::sin(angle);
                           });
                       },
                   .terms = 100,
                   .first_optional = 1});
    all.push_back({.name = "rotary_embedding",
                   .inputs = {{{3, 4}}, {{2}, 0.5, 2, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           const DType compute = in[0].defined() ? compute_type(in[0].dtype()) : DType::f32;
                           return rotary_embedding(
                               in[0], {.frequencies = in[1].defined() ? in[1].to(compute) : Tensor(), .offset = 1});
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           const Shape shape{3, 4};
                           return table(shape, [&](const Dims& at) {
                               const double angle =
                                   static_cast<double>(at[0] + 1) * in[1][static_cast<std::size_t>(at[1] % 2)];
                               const double value = in[0][flat_index(shape, {at[0], at[1]})],
                                            rotated = in[0][flat_index(shape, {at[0], (at[1] + 2) % 4})];
                               return value * std::cos(angle) + (at[1] < 2 ? -1 : 1) * rotated * std::sin(angle);
                           });
                       },
                   .first_optional = 1});
    all.push_back({.name = "sinusoidal_embedding",
                   .inputs = {{{3, 4}, 0, 50, Kind::constant}},
                   .call = [](const Tensors& in) { return sinusoidal_embedding(in[0], 6, 100); },
                   .reference =
                       [](const Columns& in, DType) {
                           return table({3, 4, 6}, [&](const Dims& at) {
                               const double angle = in[0][flat_index({3, 4}, {at[0], at[1]})] *
                                                    std::pow(100.0, -2.0 * static_cast<double>(at[2] / 2) / 6);
                               return at[2] % 2 == 0 ? std::sin(angle) : std::cos(angle);
                           });
                       },
                   .differentiable = false,
                   .terms = 100});
}

}  // namespace

std::vector<Case> attention_catalogue() {
    std::vector<Case> all;
    add_attention(all);
    add_position_embeddings(all);
    return all;
}

}  // namespace declivity::test::catalogue
