// The losses of loss.hpp as cases of the catalogue, except mse_loss and the simple forms of cross_entropy and
// bce_with_logits.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/references.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

/// Inputs of one shape, and a loss for each element, or for each of the last axis.
Case elementwise_loss_case(const std::string& name, std::vector<Input> inputs,
                           std::function<Tensor(const Tensors&)> call, std::function<double(const Values&)> reference) {
    return {.name = name,
            .inputs = std::move(inputs),
            .call = std::move(call),
            .reference =
                [reference = std::move(reference)](const Columns& in, DType) {
                    Values out;
                    for (std::size_t i = 0; i < in[0].size(); ++i) {
                        Values at;
                        for (const Values& column : in) at.push_back(column[i % column.size()]);
                        out.push_back(reference(at));
                    }
                    return out;
                },
            .terms = 4,
            .sampled = true};
}

/// Log-softmax of (4, 5, 3) along axis 1.
Values log_softmax_of_classes(const Values& x) {
    return table({4, 5, 3}, [&](const Dims& at) {
        double powers = 0;
        for (std::int64_t c = 0; c < 5; ++c) powers += std::exp(x[flat_index({4, 5, 3}, {at[0], c, at[2]})]);
        return x[flat_index({4, 5, 3}, {at[0], at[1], at[2]})] - std::log(powers);
    });
}

/// The weighted mean for x (4, 5, 3), labels (4, 3) and weights (5), with label 3 ignored.
double label_loss_reference(const Values& x, const Values& labels, const Values& weight, double smoothing) {
    double loss = 0, weights = 0;
    for (std::int64_t n = 0; n < 4; ++n)
        for (std::int64_t d = 0; d < 3; ++d) {
            const auto label = static_cast<std::int64_t>(labels[flat_index({4, 3}, {n, d})]);
            if (label == 3) continue;
            weights += weight[static_cast<std::size_t>(label)];
            for (std::int64_t c = 0; c < 5; ++c)
                loss -= ((c == label ? 1 - smoothing : 0) + smoothing / 5) * weight[static_cast<std::size_t>(c)] *
                        x[flat_index({4, 5, 3}, {n, c, d})];
        }
    return loss / weights;
}

double norm_reference(const Values& a, const Values& b, double p) {
    double total = 0;
    for (std::size_t i = 0; i < a.size(); ++i) total += std::pow(std::abs(a[i] - b[i] + 1e-6), p);
    return std::pow(total, 1 / p);
}

double product(const Values& a, const Values& b) {
    double total = 0;
    for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
    return total;
}

void add_losses_of_elements(std::vector<Case>& all) {
    constexpr auto none = Reduction::none;
    const Input x{{5, 7}}, sign{{5, 7}, -1, 2, Kind::integral}, share{{5, 7}, 0.05, 0.95}, above{{5, 7}, 0.25, 4};
    all.push_back(elementwise_loss_case(
        "l1_loss", {x, x}, [](const Tensors& in) { return l1_loss(in[0], in[1], none); },
        [](const Values& at) { return std::abs(at[0] - at[1]); }));
    all.push_back(elementwise_loss_case(
        "smooth_l1_loss", {x, x}, [](const Tensors& in) { return smooth_l1_loss(in[0], in[1], none, 0.75); },
        [](const Values& at) {
            const double d = std::abs(at[0] - at[1]);
            return d < 0.75 ? d * d / 1.5 : d - 0.375;
        }));
    all.push_back(elementwise_loss_case(
        "huber_loss", {x, x}, [](const Tensors& in) { return huber_loss(in[0], in[1], none, 0.75); },
        [](const Values& at) {
            const double d = std::abs(at[0] - at[1]);
            return d <= 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
        }));
    for (const bool logarithm : {false, true})
        all.push_back(elementwise_loss_case(
            "kl_div", {x, logarithm ? x : share},
            [logarithm](const Tensors& in) { return kl_div(in[0], in[1], none, logarithm); },
            [logarithm](const Values& at) {
                return logarithm ? std::exp(at[1]) * (at[1] - at[0]) : at[1] * (std::log(at[1]) - at[0]);
            }));
    for (const bool logarithm : {false, true})
        all.push_back(elementwise_loss_case(
            "poisson_nll_loss", {logarithm ? x : above, above},
            [logarithm](const Tensors& in) {
                return poisson_nll_loss(in[0], in[1], {.log_input = logarithm, .full = true, .reduction = none});
            },
            [logarithm](const Values& at) {
                const double t = at[1],
                             plain = logarithm ? std::exp(at[0]) - t * at[0] : at[0] - t * std::log(at[0] + 1e-8);
                return plain + (t > 1 ? t * std::log(t) - t + std::log(2 * std::numbers::pi * t) / 2 : 0);
            }));
    all.push_back(elementwise_loss_case(
        "gaussian_nll_loss", {x, x, above},
        [](const Tensors& in) { return gaussian_nll_loss(in[0], in[1], in[2], {.full = true, .reduction = none}); },
        [](const Values& at) {
            return (std::log(2 * std::numbers::pi * at[2]) + (at[0] - at[1]) * (at[0] - at[1]) / at[2]) / 2;
        }));
    all.push_back(elementwise_loss_case(
        "binary_cross_entropy", {share, share, {{7}, 0.5, 2}},
        [](const Tensors& in) { return binary_cross_entropy(in[0], in[1], none, in[2]); },
        [](const Values& at) { return -at[2] * (at[1] * std::log(at[0]) + (1 - at[1]) * std::log(1 - at[0])); }));
    all.push_back(elementwise_loss_case(
        "bce_with_logits", {x, share, {{7}, 0.5, 2}, {{5, 7}, 0.5, 2}},
        [](const Tensors& in) { return bce_with_logits(in[0], in[1], none, in[3], in[2]); },
        [](const Values& at) {
            return at[3] * (at[2] * at[1] * softplus_of(-at[0]) + (1 - at[1]) * softplus_of(at[0]));
        }));
    all.push_back(elementwise_loss_case(
        "sigmoid_focal_loss", {x, share}, [](const Tensors& in) { return sigmoid_focal_loss(in[0], in[1], 0.25, 1.5); },
        [](const Values& at) {
            const double p = 1 / (1 + std::exp(-at[0])), t = at[1];
            return (t * softplus_of(-at[0]) + (1 - t) * softplus_of(at[0])) *
                   std::pow(1 - p * t - (1 - p) * (1 - t), 1.5) * (0.25 * t + 0.75 * (1 - t));
        }));
    all.push_back(elementwise_loss_case(
        "soft_margin_loss", {x, sign}, [](const Tensors& in) { return soft_margin_loss(in[0], in[1], none); },
        [](const Values& at) { return softplus_of(-at[0] * at[1]); }));
    all.push_back(elementwise_loss_case(
        "hinge_embedding_loss", {x, sign},
        [](const Tensors& in) { return hinge_embedding_loss(in[0], in[1], 0.75, none); },
        [](const Values& at) { return (at[1] == 1 ? 0 : std::max(0.75 - at[0], 0.0)) + (at[1] == -1 ? 0 : at[0]); }));
    all.push_back(elementwise_loss_case(
        "margin_ranking_loss", {x, x, sign},
        [](const Tensors& in) { return margin_ranking_loss(in[0], in[1], in[2], 0.25, none); },
        [](const Values& at) { return std::max(0.25 - at[2] * (at[0] - at[1]), 0.0); }));
}

void add_losses_of_rows(std::vector<Case>& all) {
    constexpr auto none = Reduction::none;
    const Input x{{5, 7}}, share{{5, 7}, 0.05, 0.95};
    all.push_back(row_loss_case(
        "cosine_similarity", {x, x}, [](const Tensors& in) { return cosine_similarity(in[0], in[1]); },
        [](const Columns& at) {
            return product(at[0], at[1]) / std::sqrt(product(at[0], at[0]) * product(at[1], at[1]));
        }));
    all.push_back(row_loss_case(
        "cosine_embedding_loss", {x, x, {{5}, -1, 2, Kind::integral}},
        [](const Tensors& in) { return cosine_embedding_loss(in[0], in[1], in[2], -0.75, none); },
        [](const Columns& at) {
            const double c =
                product(at[0], at[1]) / std::sqrt((product(at[0], at[0]) + 1e-12) * (product(at[1], at[1]) + 1e-12));
            return at[2][0] == 1 ? 1 - c : at[2][0] == -1 ? std::max(c + 0.75, 0.0) : 0;
        }));
    for (const double p : {2.0, 2.5})
        all.push_back(row_loss_case(
            "pairwise_distance", {x, x}, [p](const Tensors& in) { return pairwise_distance(in[0], in[1], p); },
            [p](const Columns& at) { return norm_reference(at[0], at[1], p); }));
    all.push_back(row_loss_case(
        "triplet_margin_loss", {x, x, x},
        [](const Tensors& in) {
            return triplet_margin_loss(in[0], in[1], in[2], {.margin = 1.5, .swap = true, .reduction = none});
        },
        [](const Columns& at) {
            const double farthest = std::min(norm_reference(at[0], at[2], 2), norm_reference(at[1], at[2], 2));
            return std::max(1.5 + norm_reference(at[0], at[1], 2) - farthest, 0.0);
        }));
    all.push_back(row_loss_case(
        "multilabel_soft_margin_loss", {x, share, {{5, 7}, 0.5, 2}},
        [](const Tensors& in) { return multilabel_soft_margin_loss(in[0], in[1], none, in[2]); },
        [](const Columns& at) {
            double sum = 0;
            for (std::size_t c = 0; c < 7; ++c)
                sum += at[2][c] * (at[1][c] * softplus_of(-at[0][c]) + (1 - at[1][c]) * softplus_of(at[0][c])) / 7;
            return sum;
        }));
    all.push_back(row_loss_case(
        "multilabel_margin_loss", {x, {{5, 7}, -1, 7, Kind::label}},
        [](const Tensors& in) { return multilabel_margin_loss(in[0], in[1], none); },
        [](const Columns& at) {
            double sum = 0;
            const auto end = std::ranges::find(at[1], -1);
            for (auto label = at[1].begin(); label != end; ++label)
                for (std::size_t c = 0; c < 7; ++c)
                    if (std::find(at[1].begin(), end, static_cast<double>(c)) == end)
                        sum += std::max(1 - at[0][static_cast<std::size_t>(*label)] + at[0][c], 0.0) / 7;
            return sum;
        }));
    for (const std::int64_t p : {1, 2})
        all.push_back({.name = "multi_margin_loss",
                       .inputs = {x, {{5}, 0, 7, Kind::label}, {{7}, 0.5, 2, Kind::constant}},
                       .call =
                           [p](const Tensors& in) {
                               return multi_margin_loss(in[0], in[1], {.p = p, .margin = 0.75, .reduction = none},
                                                        in[2]);
                           },
                       .reference =
                           [p](const Columns& in, DType) {
                               return table({5}, [&](const Dims& at) {
                                   const auto label = static_cast<std::int64_t>(in[1][static_cast<std::size_t>(at[0])]);
                                   double sum = 0;
                                   for (std::int64_t c = 0; c < 7; ++c)
                                       if (c != label)
                                           sum += std::pow(std::max(0.75 - in[0][flat_index({5, 7}, {at[0], label})] +
                                                                        in[0][flat_index({5, 7}, {at[0], c})],
                                                                    0.0),
                                                           static_cast<double>(p));
                                   return sum * in[2][static_cast<std::size_t>(label)] / 7;
                               });
                           },
                       .terms = 20});
    all.push_back(
        {.name = "info_nce",
         .inputs = {{{5, 3}}, {{5, 3}}},
         .call = [](const Tensors& in) { return info_nce(in[0], in[1], 0.5); },
         .reference =
             [](const Columns& in, DType) {
                 double loss = 0;
                 for (std::int64_t n = 0; n < 5; ++n) {
                     const auto score = [&](std::int64_t k) {
                         double sum = 0;
                         for (std::int64_t d = 0; d < 3; ++d)
                             sum += in[0][flat_index({5, 3}, {n, d})] * in[1][flat_index({5, 3}, {k, d})] / 0.5;
                         return sum;
                     };
                     double powers = 0;
                     for (std::int64_t k = 0; k < 5; ++k) powers += std::exp(score(k));
                     loss += (std::log(powers) - score(n)) / 5;
                 }
                 return Values{loss};
             },
         .terms = 60});
    for (const bool tversky : {false, true})
        all.push_back({.name = tversky ? "tversky_loss" : "dice_loss",
                       .inputs = {{{3, 2, 7, 5}, 0, 1}, {{3, 2, 7, 5}, 0, 1}},
                       .call =
                           [tversky](const Tensors& in) {
                               return tversky
                                          ? tversky_loss(in[0], in[1],
                                                         {.alpha = 0.3, .beta = 0.6, .smooth = 0.5, .reduction = none})
                                          : dice_loss(in[0], in[1], 0.5, none);
                           },
                       .reference =
                           [tversky](const Columns& in, DType) {
                               return table({3, 2}, [&](const Dims& at) {
                                   double hits = 0, predicted = 0, positives = 0;
                                   for (std::int64_t i = 0; i < 35; ++i) {
                                       const std::size_t k = flat_index({3, 2, 35}, {at[0], at[1], i});
                                       hits += in[0][k] * in[1][k];
                                       predicted += in[0][k];
                                       positives += in[1][k];
                                   }
                                   return tversky ? 1 - (hits + 0.5) / (hits + 0.3 * (predicted - hits) +
                                                                        0.6 * (positives - hits) + 0.5)
                                                  : 1 - (2 * hits + 0.5) / (predicted + positives + 0.5);
                               });
                           },
                       .terms = 35});
}

void add_losses_of_labels(std::vector<Case>& all) {
    all.push_back(
        {.name = "nll_loss",
         .inputs = {{{4, 5, 3}}, {{4, 3}, 0, 5, Kind::label}, {{5}, 0.5, 2, Kind::constant}},
         .call = [](const Tensors& in) { return nll_loss(in[0], in[1], {.ignore_index = 3}, in[2]); },
         .reference = [](const Columns& in, DType) { return Values{label_loss_reference(in[0], in[1], in[2], 0)}; },
         .terms = 20});
    all.push_back({.name = "cross_entropy",
                   .inputs = {{{4, 5, 3}}, {{4, 3}, 0, 5, Kind::label}, {{5}, 0.5, 2, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           return cross_entropy(in[0], in[1], {.label_smoothing = 0.2, .ignore_index = 3}, in[2]);
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           return Values{label_loss_reference(log_softmax_of_classes(in[0]), in[1], in[2], 0.2)};
                       },
                   .terms = 60});
    all.push_back({.name = "cross_entropy",
                   .inputs = {{{4, 5, 3}}, {{4, 3}, 0, 5, Kind::label}},
                   .call =
                       [](const Tensors& in) {
                           return cross_entropy(in[0], in[1], {.reduction = Reduction::none, .ignore_index = 3});
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           const Values logarithms = log_softmax_of_classes(in[0]);
                           return table({4, 3}, [&](const Dims& at) {
                               const auto label = static_cast<std::int64_t>(in[1][flat_index({4, 3}, {at[0], at[1]})]);
                               return label == 3 ? 0 : -logarithms[flat_index({4, 5, 3}, {at[0], label, at[1]})];
                           });
                       },
                   .terms = 5});
    all.push_back({.name = "cross_entropy",
                   .inputs = {{{4, 5, 3}}, {{4, 5, 3}, 0, 1}, {{5}, 0.5, 2, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           return cross_entropy(in[0], in[1], {.reduction = Reduction::none, .label_smoothing = 0.2},
                                                in[2]);
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           const Values logarithms = log_softmax_of_classes(in[0]);
                           return table({4, 3}, [&](const Dims& at) {
                               double loss = 0;
                               for (std::int64_t c = 0; c < 5; ++c) {
                                   const std::size_t k = flat_index({4, 5, 3}, {at[0], c, at[1]});
                                   loss -= logarithms[k] * (0.8 * in[1][k] + 0.04) * in[2][static_cast<std::size_t>(c)];
                               }
                               return loss;
                           });
                       },
                   .terms = 10});
}

void add_losses_of_boxes(std::vector<Case>& all) {
    // Separate corners, so that each box has a positive area, and all overlap.
    const std::vector<Input> corners{{{5, 2}, 0, 1}, {{5, 2}, 1.5, 3}, {{5, 2}, 0, 1}, {{5, 2}, 1.5, 3}};
    using Loss = Tensor (*)(const Tensor&, const Tensor&, Reduction, double);
    const auto at = [](const Columns& in, std::size_t n, std::size_t m) {
        return BoxesReference{in[0][2 * n], in[0][2 * n + 1], in[1][2 * n], in[1][2 * n + 1],
                              in[2][2 * m], in[2][2 * m + 1], in[3][2 * m], in[3][2 * m + 1]};
    };
    all.push_back(
        {.name = "box_iou",
         .inputs = corners,
         .call =
             [](const Tensors& in) {
                 return box_iou(concat({in[0], in[1]}, 1), concat({in[2], in[3]}, 1));
             },
         .reference =
             [at](const Columns& in, DType) {
                 return table({5, 5}, [&](const Dims& pair) {
                     return at(in, static_cast<std::size_t>(pair[0]), static_cast<std::size_t>(pair[1])).iou(0);
                 });
             },
         .terms = 4,
         .error_name = "concat"});
    for (const auto& [name, loss, reference] :
         {std::tuple<std::string, Loss, double (BoxesReference::*)() const>{
              "generalized_box_iou_loss", generalized_box_iou_loss, &BoxesReference::generalized},
          {"distance_box_iou_loss", distance_box_iou_loss, &BoxesReference::distance}})
        all.push_back({.name = name,
                       .inputs = corners,
                       .call =
                           [loss = loss](const Tensors& in) {
                               return loss(concat({in[0], in[1]}, 1), concat({in[2], in[3]}, 1), Reduction::none, 1e-7);
                           },
                       .reference =
                           [at, reference = reference](const Columns& in, DType) {
                               Values out;
                               for (std::size_t n = 0; n < 5; ++n) out.push_back((at(in, n, n).*reference)());
                               return out;
                           },
                       .terms = 4,
                       .error_name = "concat"});
    // For squares, where v is 0: no gradient flows to alpha, so that numeric gradients differ for other boxes.
    all.push_back(
        {.name = "complete_box_iou_loss",
         .inputs = {{{5, 2}}, {{5, 1}, 0.5, 2}, {{5, 2}}, {{5, 1}, 0.5, 2}},
         .call =
             [](const Tensors& in) {
                 return complete_box_iou_loss(concat({in[0] - in[1], in[0] + in[1]}, 1),
                                              concat({in[2] - in[3], in[2] + in[3]}, 1));
             },
         .reference =
             [](const Columns& in, DType) {
                 Values out;
                 for (std::size_t n = 0; n < 5; ++n) {
                     const double x = in[0][2 * n], y = in[0][2 * n + 1], r = in[1][n], u = in[2][2 * n],
                                  v = in[2][2 * n + 1], s = in[3][n];
                     out.push_back(BoxesReference{x - r, y - r, x + r, y + r, u - s, v - s, u + s, v + s}.distance());
                 }
                 return out;
             },
         .terms = 8,
         .error_name = "operator-"});
}

}  // namespace

double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

std::vector<Case> loss_catalogue() {
    std::vector<Case> all;
    add_losses_of_elements(all);
    add_losses_of_rows(all);
    add_losses_of_labels(all);
    add_losses_of_boxes(all);
    return all;
}

}  // namespace declivity::test::catalogue
