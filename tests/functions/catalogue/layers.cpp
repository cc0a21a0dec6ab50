// Basic layers of networks as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

namespace declivity::test::catalogue {
namespace {

/// softmax of (3, 5, 7) along axis 1.
Values softmax_reference(const Values& x, bool logarithm) {
    return table({3, 5, 7}, [&](const Dims& at) {
        double sum = 0;
        for (std::int64_t k = 0; k < 5; ++k) sum += std::exp(x[flat_index({3, 5, 7}, {at[0], k, at[2]})]);
        const double element = x[flat_index({3, 5, 7}, {at[0], at[1], at[2]})];
        return logarithm ? element - std::log(sum) : std::exp(element) / sum;
    });
}

/// Pooling of (2, 3, 7, 5) by windows of 3 x 2, steps of 2 x 1, one zero around above and below.
Values pool_reference(const Values& x, bool largest) {
    const Shape from{2, 3, 7, 5};
    return table({2, 3, 4, 4}, [&](const Dims& at) {
        double sum = 0, maximum = -INFINITY;
        for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t j = 0; j < 2; ++j) {
                const std::int64_t h = at[2] * 2 + i - 1, w = at[3] + j;
                if (h < 0 || h >= 7) continue;
                const double value = x[flat_index(from, {at[0], at[1], h, w})];
                sum += value;
                maximum = std::max(maximum, value);
            }
        return largest ? maximum : sum / 6;
    });
}

Values conv_reference(const Columns& in) {
    // x (2, 4, 7, 5), weight (6, 2, 3, 3), stride (2, 1), padding 1, dilation (1, 2), two groups.
    return table({2, 6, 4, 3}, [&](const Dims& at) {
        double sum = in[2][static_cast<std::size_t>(at[1])];
        for (std::int64_t c = 0; c < 2; ++c)
            for (std::int64_t r = 0; r < 3; ++r)
                for (std::int64_t s = 0; s < 3; ++s) {
                    const std::int64_t h = at[2] * 2 + r - 1, w = at[3] + 2 * s - 1;
                    if (h < 0 || h >= 7 || w < 0 || w >= 5) continue;
                    sum += in[0][flat_index({2, 4, 7, 5}, {at[0], at[1] / 3 * 2 + c, h, w})] *
                           in[1][flat_index({6, 2, 3, 3}, {at[1], c, r, s})];
                }
        return sum;
    });
}

/// x (3, 5, 7), channels on axis 1; mean and variance of the batch when none are given.
Values batch_norm_reference(const Values& x, const Values& weight, const Values& bias, const Columns& statistics) {
    Values mean(5, 0), variance(5, 0);
    for (std::int64_t c = 0; c < 5; ++c) {
        const Values channel = table({3, 7}, [&](const Dims& at) {
            return x[flat_index({3, 5, 7}, {at[0], c, at[1]})];
        });
        const auto k = static_cast<std::size_t>(c);
        mean[k] = statistics.empty() ? total(channel) / 21 : statistics[0][k];
        for (const double value : channel) variance[k] += (value - mean[k]) * (value - mean[k]) / 21;
        if (!statistics.empty()) variance[k] = statistics[1][k];
    }
    return table({3, 5, 7}, [&](const Dims& at) {
        const auto c = static_cast<std::size_t>(at[1]);
        return (x[flat_index({3, 5, 7}, {at[0], at[1], at[2]})] - mean[c]) / std::sqrt(variance[c] + 1e-3) * weight[c] +
               bias[c];
    });
}

/// x of rows of n elements, weight and, unless it is a root mean square, bias (n); eps 1e-3.
Values row_norm_reference(const Columns& in, std::size_t n, bool rms) {
    Values out;
    for (std::size_t first = 0; first < in[0].size(); first += n) {
        double mean = 0, squares = 0;
        for (std::size_t i = 0; i < n && !rms; ++i) mean += in[0][first + i] / static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) squares += std::pow(in[0][first + i] - mean, 2) / static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i)
            out.push_back((in[0][first + i] - mean) / std::sqrt(squares + 1e-3) * in[1][i] + (rms ? 0 : in[2][i]));
    }
    return out;
}

/// x (3, 4), hidden and cell (3, 5), weights (20, 4) and (20, 5), biases (20).
Values lstm_reference(const Columns& in, bool cell) {
    return table({3, 5}, [&](const Dims& at) {
        const auto gate = [&](std::int64_t gate_number) {
            const auto row = static_cast<std::size_t>(gate_number * 5 + at[1]), n = static_cast<std::size_t>(at[0]);
            double sum = in[5][row] + in[6][row];
            for (std::size_t k = 0; k < 4; ++k) sum += in[0][n * 4 + k] * in[3][row * 4 + k];
            for (std::size_t k = 0; k < 5; ++k) sum += in[1][n * 5 + k] * in[4][row * 5 + k];
            return sum;
        };
        const double next =
            logistic(gate(1)) * in[2][flat_index({3, 5}, {at[0], at[1]})] + logistic(gate(0)) * std::tanh(gate(2));
        return cell ? next : logistic(gate(3)) * std::tanh(next);
    });
}

void add_softmax_and_losses(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "argmax",
         .inputs = {{{3, 5, 7}, 0, 4, Kind::integral}},
         .call = [](const Tensors& in) { return argmax(in[0], 1); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 7}, [&](const Dims& at) {
                     std::int64_t best = 0;
                     for (std::int64_t k = 1; k < 5; ++k)
                         if (in[0][flat_index({3, 5, 7}, {at[0], k, at[1]})] >
                             in[0][flat_index({3, 5, 7}, {at[0], best, at[1]})])
                             best = k;
                     return static_cast<double>(best);
                 });
             },
         .differentiable = false});
    add({.name = "softmax",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return softmax(in[0], 1); },
         .reference = [](const Columns& in, DType) { return softmax_reference(in[0], false); },
         .terms = 5});
    add({.name = "log_softmax",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return log_softmax(in[0], 1); },
         .reference = [](const Columns& in, DType) { return softmax_reference(in[0], true); },
         .terms = 5});
    add({.name = "cross_entropy",
         .inputs = {{{11, 5}}, {{11}, 0, 5, Kind::label}},
         .call =
             [](const Tensors& in) { return cross_entropy(in[0], in[1], {.label_smoothing = 0.2, .ignore_index = 3}); },
         .reference =
             [](const Columns& in, DType) {
                 double loss = 0, rows = 0;
                 for (std::size_t n = 0; n < 11; ++n) {
                     const auto label = static_cast<std::size_t>(in[1][n]);
                     if (label == 3) continue;
                     ++rows;
                     double sum = 0;
                     for (std::size_t k = 0; k < 5; ++k) sum += std::exp(in[0][n * 5 + k]);
                     for (std::size_t k = 0; k < 5; ++k)
                         loss -= (k == label ? 0.8 + 0.04 : 0.04) * (in[0][n * 5 + k] - std::log(sum));
                 }
                 return Values{loss / rows};
             },
         .terms = 55});
    add({.name = "mse_loss",
         .inputs = {{{5, 7}}, {{5, 7}}},
         .call = [](const Tensors& in) { return mse_loss(in[0], in[1]); },
         .reference =
             [](const Columns& in, DType) {
                 double sum = 0;
                 for (std::size_t i = 0; i < 35; ++i) sum += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
                 return Values{sum / 35};
             },
         .terms = 35});
    for (const auto& [name, function] :
         {std::pair<std::string, decltype(&bce_with_logits)>{"bce_with_logits", &bce_with_logits},
          {"binary_cross_entropy_with_logits", &binary_cross_entropy_with_logits}})
        add({.name = name,
             .inputs = {{{5, 7}}, {{5, 7}, 0.1, 0.9}},
             .call = [function =
                          function](const Tensors& in) { return function(in[0], in[1], Reduction::sum, {}, {}); },
             .reference =
                 [](const Columns& in, DType) {
                     double sum = 0;
                     for (std::size_t i = 0; i < 35; ++i)
                         sum -=
                             in[1][i] * std::log(logistic(in[0][i])) + (1 - in[1][i]) * std::log(logistic(-in[0][i]));
                     return Values{sum};
                 },
             .terms = 35});
}

void add_matmul_and_linear(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "matmul",
         .inputs = {{{3, 1, 5, 7}}, {{2, 7, 3}}},
         .call = [](const Tensors& in) { return matmul(in[0], in[1]); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 2, 5, 3}, [&](const Dims& at) {
                     double sum = 0;
                     for (std::int64_t k = 0; k < 7; ++k)
                         sum += in[0][flat_index({3, 1, 5, 7}, {at[0], 0, at[2], k})] *
                                in[1][flat_index({2, 7, 3}, {at[1], k, at[3]})];
                     return sum;
                 });
             },
         .terms = 7});
    add({.name = "linear",
         .inputs = {{{3, 5, 7}}, {{9, 7}}, {{9}}},
         .call = [](const Tensors& in) { return linear(in[0], in[1], in[2]); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 5, 9}, [&](const Dims& at) {
                     double sum = in[2][static_cast<std::size_t>(at[2])];
                     for (std::int64_t k = 0; k < 7; ++k)
                         sum += in[0][flat_index({3, 5, 7}, {at[0], at[1], k})] * in[1][flat_index({9, 7}, {at[2], k})];
                     return sum;
                 });
             },
         .terms = 8});
}

void add_conv2d_and_pool2d(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "conv2d",
         .inputs = {{{2, 4, 7, 5}}, {{6, 2, 3, 3}}, {{6}}},
         .call =
             [](const Tensors& in) {
                 return conv2d(in[0], in[1], in[2], {.stride = {2, 1}, .padding = 1, .dilation = {1, 2}, .groups = 2});
             },
         .reference = [](const Columns& in, DType) { return conv_reference(in); },
         .terms = 19});
    const Pool2dParameters window{.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 0}};
    add({.name = "max_pool2d",
         .inputs = {{{2, 3, 7, 5}}},
         .call = [window](const Tensors& in) { return max_pool2d(in[0], window); },
         .reference = [](const Columns& in, DType) { return pool_reference(in[0], true); }});
    add({.name = "avg_pool2d",
         .inputs = {{{2, 3, 7, 5}}},
         .call = [window](const Tensors& in) { return avg_pool2d(in[0], window); },
         .reference = [](const Columns& in, DType) { return pool_reference(in[0], false); },
         .terms = 6});
    add({.name = "global_avg_pool2d",
         .inputs = {{{2, 3, 7, 5}}},
         .call = [](const Tensors& in) { return global_avg_pool2d(in[0]); },
         .reference =
             [](const Columns& in, DType) {
                 return table({2, 3}, [&](const Dims& at) {
                     return total(table({7, 5},
                                        [&](const Dims& index) {
                                            return in[0][flat_index({2, 3, 7, 5}, {at[0], at[1], index[0], index[1]})];
                                        })) /
                            35;
                 });
             },
         .terms = 35});
}

void add_batch_norms(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "batch_norm",
         .inputs = {{{3, 5, 7}}, {{5}}, {{5}}},
         .call = [](const Tensors& in) { return batch_norm(in[0], in[1], in[2], {}, {}, {.eps = 1e-3}); },
         .reference = [](const Columns& in, DType) { return batch_norm_reference(in[0], in[1], in[2], {}); },
         .terms = 21,
         .gradient_tolerance = 1e-5});
    add({.name = "batch_norm",
         .inputs = {{{3, 5, 7}}, {{5}}, {{5}}, {{5}, -1, 1, Kind::constant}, {{5}, 0.5, 2, Kind::constant}},
         .call =
             [](const Tensors& in) {
                 return batch_norm(in[0], in[1], in[2], in[3], in[4], {.training = false, .eps = 1e-3});
             },
         .reference =
             [](const Columns& in, DType) {
                 return batch_norm_reference(in[0], in[1], in[2], {in[3], in[4]});
             }});
}

void add_conv1d_and_conv_transpose2d(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "conv1d",
         .inputs = {{{2, 4, 9}}, {{6, 2, 3}}, {{6}}},
         .call =
             [](const Tensors& in) {
                 return conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 2, .dilation = 2, .groups = 2});
             },
         .reference =
             [](const Columns& in, DType) {
                 return table({2, 6, 5}, [&](const Dims& at) {
                     double sum = in[2][static_cast<std::size_t>(at[1])];
                     for (std::int64_t c = 0; c < 2; ++c)
                         for (std::int64_t r = 0; r < 3; ++r) {
                             const std::int64_t l = at[2] * 2 + 2 * r - 2;
                             if (l < 0 || l >= 9) continue;
                             sum += in[0][flat_index({2, 4, 9}, {at[0], at[1] / 3 * 2 + c, l})] *
                                    in[1][flat_index({6, 2, 3}, {at[1], c, r})];
                         }
                     return sum;
                 });
             },
         .terms = 7});
    add({.name = "conv_transpose2d",
         .inputs = {{{2, 4, 3, 5}}, {{4, 3, 3, 2}}, {{6}}},
         .call =
             [](const Tensors& in) {
                 return conv_transpose2d(
                     in[0], in[1], in[2],
                     {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
             },
         .reference =
             [](const Columns& in, DType) {
                 // (3 - 1) 2 - 2 + 2 + 1 + 1 = 6 rows, (5 - 1) 3 + 2 + 2 + 1 = 17 columns.
                 const Shape out{2, 6, 6, 17};
                 Values sums(static_cast<std::size_t>(out.numel()), 0);
                 for_each_index({2, 4, 3, 5}, [&](const Dims& at) {
                     for (std::int64_t o = 0; o < 3; ++o)
                         for (std::int64_t r = 0; r < 3; ++r)
                             for (std::int64_t s = 0; s < 2; ++s) {
                                 const std::int64_t h = at[2] * 2 + r - 1, w = at[3] * 3 + 2 * s;
                                 if (h < 0 || h >= 6 || w >= 17) continue;
                                 sums[flat_index(out, {at[0], at[1] / 2 * 3 + o, h, w})] +=
                                     in[0][flat_index({2, 4, 3, 5}, {at[0], at[1], at[2], at[3]})] *
                                     in[1][flat_index({4, 3, 3, 2}, {at[1], o, r, s})];
                             }
                 });
                 for_each_index(out, [&](const Dims& at) {
                     sums[flat_index(out, {at[0], at[1], at[2], at[3]})] += in[2][static_cast<std::size_t>(at[1])];
                 });
                 return sums;
             },
         .terms = 13});
}

void add_norms_of_rows(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "layer_norm",
         .inputs = {{{3, 5, 7}}, {{5, 7}}, {{5, 7}}},
         .call =
             [](const Tensors& in) {
                 return layer_norm(in[0], {5, 7}, in[1], in[2], 1e-3);
             },
         .reference = [](const Columns& in, DType) { return row_norm_reference(in, 35, false); },
         .terms = 35,
         .gradient_tolerance = 1e-5});
    add({.name = "rms_norm",
         .inputs = {{{3, 5, 7}}, {{7}}},
         .call = [](const Tensors& in) { return rms_norm(in[0], {7}, in[1], 1e-3); },
         .reference = [](const Columns& in, DType) { return row_norm_reference(in, 7, true); },
         .terms = 7,
         .gradient_tolerance = 1e-5});
}

void add_lstm_cells(std::vector<Case>& all) {
    const auto add = adder(all);
    for (const bool cell : {false, true})
        add({.name = "lstm_cell",
             .inputs = {{{3, 4}}, {{3, 5}}, {{3, 5}}, {{20, 4}}, {{20, 5}}, {{20}}, {{20}}},
             .call =
                 [cell](const Tensors& in) {
                     const LstmState next = lstm_cell(in[0], {in[1], in[2]}, in[3], in[4], in[5], in[6]);
                     return cell ? next.cell : next.hidden;
                 },
             .reference = [cell](const Columns& in, DType) { return lstm_reference(in, cell); },
             .terms = 11});
}

void add_topk_embedding_and_dropout(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "topk",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return topk(in[0], 2, 1).values; },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 2, 7}, [&](const Dims& at) {
                     Values row;
                     for (std::int64_t c = 0; c < 5; ++c)
                         row.push_back(in[0][flat_index({3, 5, 7}, {at[0], c, at[2]})]);
                     std::ranges::sort(row, std::greater<>());
                     return row[static_cast<std::size_t>(at[1])];
                 });
             }});
    add({.name = "embedding",
         .inputs = {{{4, 3}, 0, 5, Kind::label}, {{5, 7}}},
         .call = [](const Tensors& in) { return embedding(in[0], in[1]); },
         .reference =
             [](const Columns& in, DType) {
                 return table({4, 3, 7}, [&](const Dims& at) {
                     const double number = in[0][flat_index({4, 3}, {at[0], at[1]})];
                     return in[1][static_cast<std::size_t>(number) * 7 + static_cast<std::size_t>(at[2])];
                 });
             }});
    add({.name = "dropout",
         .inputs = {{{3, 5, 7}}},
         .call =
             [](const Tensors& in) {
                 manual_seed(5);
                 return dropout(in[0], 0.3);
             },
         .reference =
             [](const Columns& in, DType dtype) {
                 manual_seed(5);
                 const Values chance = values(uniform({3, 5, 7}, 0, 1, {dtype}));
                 Values out;
                 for (std::size_t i = 0; i < chance.size(); ++i) out.push_back(chance[i] < 0.3 ? 0 : in[0][i] / 0.7);
                 return out;
             },
         .random = true});
}

}  // namespace

std::vector<Case> layer_catalogue() {
    std::vector<Case> all;
    add_softmax_and_losses(all);
    add_matmul_and_linear(all);
    add_conv2d_and_pool2d(all);
    add_batch_norms(all);
    add_conv1d_and_conv_transpose2d(all);
    add_norms_of_rows(all);
    add_lstm_cells(all);
    add_topk_embedding_and_dropout(all);
    return all;
}

}  // namespace declivity::test::catalogue
