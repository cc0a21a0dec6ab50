// Normalisation, embeddings, pairwise distances and CTC loss as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

/// x (N, C, L) normalised over groups of channels, times weight, plus an optional bias (C).
Values group_norm_reference(const Shape& shape, std::int64_t groups, const Columns& in, double eps) {
    const std::int64_t group_size = shape[1] / groups;
    return table(shape, [&](const Dims& at) {
        const std::int64_t first = at[1] / group_size * group_size;
        double mean = 0, squares = 0;
        const auto n = static_cast<double>(group_size * shape[2]);
        const auto element = [&](std::int64_t c, std::int64_t l) { return in[0][flat_index(shape, {at[0], c, l})]; };
        for (std::int64_t c = first; c < first + group_size; ++c)
            for (std::int64_t l = 0; l < shape[2]; ++l) mean += element(c, l) / n;
        for (std::int64_t c = first; c < first + group_size; ++c)
            for (std::int64_t l = 0; l < shape[2]; ++l) squares += std::pow(element(c, l) - mean, 2) / n;
        const double y = (element(at[1], at[2]) - mean) / std::sqrt(squares + eps);
        const auto channel = static_cast<std::size_t>(at[1]);
        return y * (in.size() > 1 ? in[1][channel] : 1) + (in.size() > 2 ? in[2][channel] : 0);
    });
}

void add_group_norms(std::vector<Case>& all) {
    const Shape shape{2, 6, 5};
    const std::vector<Input> inputs{{shape}, {{6}}, {{6}}};
    all.push_back({.name = "group_norm",
                   .inputs = inputs,
                   .call = [](const Tensors& in) { return group_norm(in[0], 2, in[1], in[2], 1e-3); },
                   .reference = [shape](const Columns& in, DType) { return group_norm_reference(shape, 2, in, 1e-3); },
                   .terms = 15,
                   .gradient_tolerance = 1e-5,
                   .first_optional = 1});
    all.push_back({.name = "group_norm",
                   .inputs = {{shape}},
                   .call = [](const Tensors& in) { return group_norm(in[0], 1); },
                   .reference = [shape](const Columns& in, DType) { return group_norm_reference(shape, 1, in, 1e-5); },
                   .terms = 30,
                   .gradient_tolerance = 1e-5,
                   .sampled = true});
    all.push_back({.name = "instance_norm",
                   .inputs = inputs,
                   .call = [](const Tensors& in) { return instance_norm(in[0], in[1], in[2], {}, {}, {.eps = 1e-2}); },
                   .reference = [shape](const Columns& in, DType) { return group_norm_reference(shape, 6, in, 1e-2); },
                   .terms = 15,
                   .gradient_tolerance = 1e-5,
                   .first_optional = 1});
    all.push_back({.name = "instance_norm",
                   .inputs = {{shape}, {{6}}, {{6}}, {{6}, -1, 1, Kind::constant}, {{6}, 0.5, 2, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           return instance_norm(in[0], in[1], in[2], in[3], in[4],
                                                {.use_input_stats = false, .eps = 1e-3});
                       },
                   .reference =
                       [shape](const Columns& in, DType) {
                           return table(shape, [&](const Dims& at) {
                               const auto c = static_cast<std::size_t>(at[1]);
                               return (in[0][flat_index(shape, {at[0], at[1], at[2]})] - in[3][c]) /
                                          std::sqrt(in[4][c] + 1e-3) * in[1][c] +
                                      in[2][c];
                           });
                       },
                   .first_optional = 1,
                   .sampled = true});
}

void add_norms_of_neighbours(std::vector<Case>& all) {
    const Shape shape{2, 7, 3};
    for (const std::int64_t size : {3, 4, 17})
        all.push_back({.name = "local_response_norm",
                       .inputs = {{shape}},
                       .call = [size](const Tensors& in) { return local_response_norm(in[0], size, 0.9, 0.6, 1.5); },
                       .reference =
                           [shape, size](const Columns& in, DType) {
                               return table(shape, [&](const Dims& at) {
                                   double squares = 0;
                                   for (std::int64_t c = at[1] - size / 2; c <= at[1] + (size - 1) / 2; ++c)
                                       if (c >= 0 && c < 7)
                                           squares += std::pow(in[0][flat_index(shape, {at[0], c, at[2]})], 2);
                                   return in[0][flat_index(shape, {at[0], at[1], at[2]})] /
                                          std::pow(1.5 + 0.9 / static_cast<double>(size) * squares, 0.6);
                               });
                           },
                       .terms = 8,
                       .sampled = size != 4});
    for (const double p : {2.0, 3.0, std::numeric_limits<double>::infinity()})
        all.push_back({.name = "normalize",
                       .inputs = {{shape}},
                       .call = [p](const Tensors& in) { return normalize(in[0], p, p == 3 ? -2 : 1, 1e-3); },
                       .reference =
                           [shape, p](const Columns& in, DType) {
                               return table(shape, [&](const Dims& at) {
                                   double sum = 0, largest = 0;
                                   for (std::int64_t c = 0; c < 7; ++c) {
                                       const double size = std::abs(in[0][flat_index(shape, {at[0], c, at[2]})]);
                                       sum += std::pow(size, p), largest = std::max(largest, size);
                                   }
                                   return in[0][flat_index(shape, {at[0], at[1], at[2]})] /
                                          (std::isinf(p) ? largest : std::pow(sum, 1 / p));
                               });
                           },
                       .terms = 10,
                       .sampled = p != 2});
    all.push_back({.name = "channel_shuffle",
                   .inputs = {{{2, 6, 3, 2}}},
                   .call = [](const Tensors& in) { return channel_shuffle(in[0], 3); },
                   .reference =
                       [](const Columns& in, DType) {
                           return table({2, 6, 3, 2}, [&](const Dims& at) {
                               return in[0][flat_index({2, 6, 3, 2}, {at[0], at[1] % 3 * 2 + at[1] / 3, at[2], at[3]})];
                           });
                       }});
    all.push_back({.name = "softmin",
                   .inputs = {{shape}},
                   .call = [](const Tensors& in) { return softmin(in[0], 1); },
                   .reference =
                       [shape](const Columns& in, DType) {
                           return table(shape, [&](const Dims& at) {
                               double sum = 0;
                               for (std::int64_t c = 0; c < 7; ++c)
                                   sum += std::exp(-in[0][flat_index(shape, {at[0], c, at[2]})]);
                               return std::exp(-in[0][flat_index(shape, {at[0], at[1], at[2]})]) / sum;
                           });
                       },
                   .terms = 8});
}

void add_bags(std::vector<Case>& all) {
    // Ten indices into a table (5, 3), in bags of three and a last one, or rows of five.
    const auto bag = [](BagMode mode, bool rows) {
        return [mode, rows](const Columns& in, DType) {
            const std::int64_t size = rows ? 5 : 3;
            return table({rows ? 2 : 4, 3}, [&](const Dims& at) {
                double sum = 0, largest = -INFINITY;
                std::int64_t count = 0;
                for (std::int64_t i = at[0] * size; i < std::min<std::int64_t>(10, (at[0] + 1) * size); ++i, ++count) {
                    const double x = in[1][flat_index(
                        {5, 3}, {static_cast<std::int64_t>(in[0][static_cast<std::size_t>(i)]), at[1]})];
                    sum += x * (in.size() > 2 ? in[2][static_cast<std::size_t>(i)] : 1);
                    largest = std::max(largest, x);
                }
                return mode == BagMode::max ? largest : mode == BagMode::mean ? sum / static_cast<double>(count) : sum;
            });
        };
    };
    const auto starts = [](const Tensor& options_of) { return arange(0, 10, 3, {DType::i64, options_of.device()}); };
    all.push_back({.name = "embedding_bag",
                   .inputs = {{{10}, 0, 5, Kind::label}, {{5, 3}}, {{10}}},
                   .call =
                       [starts](const Tensors& in) {
                           const Tensor offsets = in[0].defined() ? starts(in[0]) : in[0];
                           return embedding_bag(in[0], in[1], offsets, in[2], {.mode = BagMode::sum});
                       },
                   .reference = bag(BagMode::sum, false),
                   .terms = 3,
                   .first_optional = 2});
    all.push_back({.name = "embedding_bag",
                   .inputs = {{{2, 5}, 0, 5, Kind::label}, {{5, 3}}},
                   .call = [](const Tensors& in) { return embedding_bag(in[0], in[1]); },
                   .reference = bag(BagMode::mean, true),
                   .terms = 5,
                   .sampled = true});
    all.push_back({.name = "embedding_bag",
                   .inputs = {{{10}, 0, 5, Kind::label}, {{5, 3}}},
                   .call =
                       [starts](const Tensors& in) {
                           const Tensor offsets = in[0].defined() ? starts(in[0]) : in[0];
                           return embedding_bag(in[0], in[1], offsets, {}, {.mode = BagMode::max});
                       },
                   .reference = bag(BagMode::max, false),
                   .terms = 3,
                   .sampled = true});
}

void add_pairs(std::vector<Case>& all) {
    const auto distance = [](const Values& a, std::int64_t i, const Values& b, std::int64_t j, double p) {
        double sum = 0, largest = 0;
        for (std::int64_t k = 0; k < 3; ++k) {
            const double d = std::abs(a[static_cast<std::size_t>(3 * i + k)] - b[static_cast<std::size_t>(3 * j + k)]);
            sum += std::pow(d, p), largest = std::max(largest, d);
        }
        return std::isinf(p) ? largest : std::pow(sum, 1 / p);
    };
    for (const double p : {2.0, 1.0, 3.0, std::numeric_limits<double>::infinity()}) {
        all.push_back({.name = "cdist",
                       .inputs = {{{2, 5, 3}}, {{4, 3}}},
                       .call = [p](const Tensors& in) { return cdist(in[0], in[1], p); },
                       .reference =
                           [distance, p](const Columns& in, DType) {
                               return table({2, 5, 4}, [&](const Dims& at) {
                                   return distance(in[0], 5 * at[0] + at[1], in[1], at[2], p);
                               });
                           },
                       .terms = 6,
                       .sampled = p != 2});
        all.push_back({.name = "pdist",
                       .inputs = {{{5, 3}}},
                       .call = [p](const Tensors& in) { return pdist(in[0], p); },
                       .reference =
                           [distance, p](const Columns& in, DType) {
                               Values out;
                               for (std::int64_t i = 0; i < 5; ++i)
                                   for (std::int64_t j = i + 1; j < 5; ++j)
                                       out.push_back(distance(in[0], i, in[0], j, p));
                               return out;
                           },
                       .terms = 6,
                       .sampled = p != 2});
    }
    all.push_back({.name = "bilinear",
                   .inputs = {{{3, 2, 4}}, {{3, 2, 5}}, {{3, 4, 5}}, {{3}}},
                   .call = [](const Tensors& in) { return bilinear(in[0], in[1], in[2], in[3]); },
                   .reference =
                       [](const Columns& in, DType) {
                           return table({3, 2, 3}, [&](const Dims& at) {
                               double sum = in[3][static_cast<std::size_t>(at[2])];
                               for (std::int64_t i = 0; i < 4; ++i)
                                   for (std::int64_t j = 0; j < 5; ++j)
                                       sum += in[0][flat_index({3, 2, 4}, {at[0], at[1], i})] *
                                              in[2][flat_index({3, 4, 5}, {at[2], i, j})] *
                                              in[1][flat_index({3, 2, 5}, {at[0], at[1], j})];
                               return sum;
                           });
                       },
                   .terms = 40,
                   .first_optional = 3});
}

void add_weighted_losses(std::vector<Case>& all) {
    using Loss = std::function<Tensor(const Tensors&)>;
    const auto add_loss = [&](const std::string& name, Loss call, double (*function)(double), bool weighted) {
        Case test_case{.name = name,
                       .inputs = {{{5, 7}}, {{5, 7}}, {{5, 7}, 0.5, 2}},
                       .call = std::move(call),
                       .reference =
                           [function, weighted](const Columns& in, DType) {
                               double sum = 0, weights = 0;
                               for (std::size_t i = 0; i < 35; ++i) {
                                   sum += function(std::abs(in[0][i] - in[1][i])) * in[2][i];
                                   weights += weighted ? in[2][i] : 1;
                               }
                               return Values{sum / weights};
                           },
                       .terms = 40};
        test_case.first_optional = 2;
        test_case.sampled = true;
        all.push_back(std::move(test_case));
    };
    add_loss(
        "mse_loss", [](const Tensors& in) { return mse_loss(in[0], in[1], Reduction::mean, in[2]); },
        [](double d) { return d * d; }, true);
    add_loss(
        "l1_loss", [](const Tensors& in) { return l1_loss(in[0], in[1], Reduction::mean, in[2]); },
        [](double d) { return d; }, true);
    add_loss(
        "huber_loss", [](const Tensors& in) { return huber_loss(in[0], in[1], Reduction::mean, 0.75, in[2]); },
        [](double d) { return d <= 0.75 ? d * d / 2 : 0.75 * (d - 0.375); }, false);
    const Input x{{5, 7}};
    all.push_back(row_loss_case(
        "triplet_margin_with_distance_loss", {x, x, x},
        [](const Tensors& in) {
            const auto l1_distance = [](const Tensor& a, const Tensor& b) { return sum(abs(a - b), {-1}); };
            return triplet_margin_with_distance_loss(
                in[0], in[1], in[2],
                {.distance = l1_distance, .margin = 3.5, .swap = true, .reduction = Reduction::none});
        },
        [](const Columns& at) {
            const auto l1_distance = [&](std::size_t a, std::size_t b) {
                double sum = 0;
                for (std::size_t i = 0; i < 7; ++i) sum += std::abs(at[a][i] - at[b][i]);
                return sum;
            };
            return std::max(3.5 + l1_distance(0, 1) - std::min(l1_distance(0, 2), l1_distance(1, 2)), 0.0);
        }));
}

/// The probability of all paths of `steps` classes that collapse to the target without repetitions and blanks (0).
double probability_of_paths(const std::function<double(std::int64_t, std::int64_t)>& log_prob, std::int64_t classes,
                            std::int64_t steps, const std::vector<std::int64_t>& target, std::int64_t blank) {
    double total = 0;
    std::vector<std::int64_t> path(static_cast<std::size_t>(steps), 0);
    for (;;) {
        std::vector<std::int64_t> collapsed;
        double sum = 0;
        for (std::size_t t = 0; t < path.size(); ++t) {
            sum += log_prob(static_cast<std::int64_t>(t), path[t]);
            if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) collapsed.push_back(path[t]);
        }
        if (collapsed == target) total += std::exp(sum);
        std::size_t digit = 0;
        while (digit < path.size() && ++path[digit] == classes) path[digit++] = 0;
        if (digit == path.size()) return total;
    }
}

void add_sequences(std::vector<Case>& all) {
    // Inputs of 3, 4 and 5 steps, targets of 0, 1 and 2 labels; classes 0 to 3.
    for (const std::int64_t blank : {0, 3}) {
        const double first_class = blank == 0 ? 1 : 0;
        all.push_back(
            {.name = "ctc_loss",
             .inputs = {{{5, 3, 4}, -3, 0}, {{3, 2}, first_class, first_class + 3, Kind::label}},
             .call =
                 [blank](const Tensors& in) {
                     if (!in[0].defined()) return ctc_loss(in[0], in[1], in[0], in[0]);
                     const TensorOptions options{DType::i64, in[0].device()};
                     return ctc_loss(in[0], in[1], arange(3, 6, 1, options), arange(0, 3, 1, options),
                                     {.blank = blank, .reduction = blank == 0 ? Reduction::none : Reduction::mean});
                 },
             .reference =
                 [blank](const Columns& in, DType) {
                     Values losses;
                     for (std::int64_t n = 0; n < 3; ++n) {
                         std::vector<std::int64_t> target;
                         for (std::int64_t i = 0; i < n; ++i)
                             target.push_back(static_cast<std::int64_t>(in[1][static_cast<std::size_t>(2 * n + i)]));
                         const auto log_prob = [&](std::int64_t t, std::int64_t c) {
                             return in[0][flat_index({5, 3, 4}, {t, n, c})];
                         };
                         losses.push_back(-std::log(probability_of_paths(log_prob, 4, n + 3, target, blank)));
                     }
                     if (blank == 0) return losses;
                     return Values{(losses[0] + losses[1] + losses[2] / 2) / 3};
                 },
             .terms = 20,
             .gradient_tolerance = 1e-5,
             .sampled = blank == 3});
    }
}

}  // namespace

std::vector<Case> norm_embedding_catalogue() {
    std::vector<Case> all;
    add_group_norms(all);
    add_norms_of_neighbours(all);
    add_bags(all);
    add_pairs(all);
    add_weighted_losses(all);
    add_sequences(all);
    return all;
}

}  // namespace declivity::test::catalogue
