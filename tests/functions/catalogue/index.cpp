// Functions of indices, masks and labels as cases of the catalogue.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

/// Index i of in[1].
std::int64_t selected_index(const Columns& in, std::int64_t i) {
    return to_integer(in[1][static_cast<std::size_t>(i)]);
}

/// x (3, 5, 7), changed by `join` at the indices of in[1] (4) along axis 1, with the rows (3, 4, 7) if there are any.
auto scatter_reference(const std::function<void(double&, double)>& join) {
    return [=](const Columns& in, DType) {
        Values out = in[0];
        for_each_index({3, 4, 7}, [&](const Dims& at) {
            join(out[static_cast<std::size_t>((at[0] * 5 + selected_index(in, at[1])) * 7 + at[2])],
                 in.size() > 2 ? element(in[2], {3, 4, 7}, {at[0], at[1], at[2]}) : 0);
        });
        return out;
    };
}

void add_gathers_and_scatters(std::vector<Case>& all) {
    // x (3, 5, 7), index (2, 4, 7) along axis 1.
    const Shape from{3, 5, 7}, taken{2, 4, 7};
    const Input x{from}, index{taken, 0, 5, Kind::label}, src{{2, 4, 7}};
    const auto at_index = [taken](const Columns& in, const Dims& at) {
        return to_integer(element(in[1], taken, {at[0], at[1], at[2]}));
    };
    all.push_back({.name = "gather",
                   .inputs = {x, index},
                   .call = [](const Tensors& in) { return gather(in[0], 1, in[1]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table(taken, [&](const Dims& at) {
                               return element(in[0], from, {at[0], at_index(in, at), at[2]});
                           });
                       }});
    all.push_back(
        {.name = "take_along_axis",
         .inputs = {x, {{1, 4, 1}, 0, 5, Kind::label}},
         .call = [](const Tensors& in) { return take_along_axis(in[0], in[1], 1); },
         .reference =
             [=](const Columns& in, DType) {
                 return table({3, 4, 7}, [&](const Dims& at) {
                     return element(in[0], from, {at[0], to_integer(in[1][static_cast<std::size_t>(at[1])]), at[2]});
                 });
             }});
    // The values scattered to an index, in order.
    const auto scattered = [=](const std::function<void(double&, double, int)>& join) {
        return [=](const Columns& in, DType) {
            Values out = in[0];
            std::vector<int> counts(out.size(), 0);
            for_each_index(taken, [&](const Dims& at) {
                const auto position = static_cast<std::size_t>((at[0] * 5 + at_index(in, at)) * 7 + at[2]);
                join(out[position], element(in[2], taken, {at[0], at[1], at[2]}), counts[position]++);
            });
            return out;
        };
    };
    all.push_back({.name = "scatter",
                   .inputs = {x, index, src},
                   .call = [](const Tensors& in) { return scatter(in[0], 1, in[1], in[2]); },
                   .reference = scattered([](double& to, double value, int) { to = value; })});
    all.push_back({.name = "scatter_add",
                   .inputs = {x, index, src},
                   .call = [](const Tensors& in) { return scatter_add(in[0], 1, in[1], in[2]); },
                   .reference = scattered([](double& to, double value, int) { to += value; }),
                   .terms = 4});
    all.push_back(
        {.name = "scatter_reduce",
         .inputs = {x, index, src},
         .call = [](const Tensors& in) { return scatter_reduce(in[0], 1, in[1], in[2], ScatterReduction::amax); },
         .reference = scattered([](double& to, double value, int) { to = std::max(to, value); }),
         .terms = 4});
    all.push_back(
        {.name = "scatter_reduce",
         .inputs = {x, index, src},
         .call =
             [](const Tensors& in) { return scatter_reduce(in[0], 1, in[1], in[2], ScatterReduction::mean, false); },
         .reference = scattered([](double& to, double value, int before) {
             to = before == 0 ? value : (to * before + value) / (before + 1);
         }),
         .terms = 4});
}

void add_selections(std::vector<Case>& all) {
    // Indices (4) along axis 1.
    const Shape from{3, 5, 7};
    const Input x{from}, indices{{4}, 0, 5, Kind::label}, rows{{3, 4, 7}};
    all.push_back({.name = "index_select",
                   .inputs = {x, indices},
                   .call = [](const Tensors& in) { return index_select(in[0], 1, in[1]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table({3, 4, 7}, [&](const Dims& at) {
                               return element(in[0], from, {at[0], selected_index(in, at[1]), at[2]});
                           });
                       }});
    all.push_back({.name = "index_add",
                   .inputs = {x, indices, rows},
                   .call = [](const Tensors& in) { return index_add(in[0], 1, in[1], in[2], 0.5); },
                   .reference = scatter_reference([](double& to, double item) { to += 0.5 * item; }),
                   .terms = 4});
    all.push_back({.name = "index_copy",
                   .inputs = {x, indices, rows},
                   .call = [](const Tensors& in) { return index_copy(in[0], 1, in[1], in[2]); },
                   .reference = scatter_reference([](double& to, double value) { to = value; })});
}

void add_unique_values(std::vector<Case>& all) {
    // Indices from 0 to 4, all of which occur several times.
    const Input repeated_indices{{6, 7}, 0, 5, Kind::label};
    all.push_back({.name = "unique",
                   .inputs = {repeated_indices},
                   .call = [](const Tensors& in) { return unique(in[0]).counts; },
                   .reference =
                       [](const Columns& in, DType) {
                           std::map<double, double> counts;
                           for (const double input : in[0]) ++counts[input];
                           Values out;
                           for (const auto& [value, count] : counts) out.push_back(count);
                           return out;
                       },
                   .differentiable = false,
                   .reads_elements = true});
    all.push_back({.name = "unique",
                   .inputs = {{{2, 11}, 0, 3, Kind::label}},
                   .call = [](const Tensors& in) { return unique(in[0], 1).values; },
                   .reference =
                       [](const Columns& in, DType) {
                           std::set<std::pair<double, double>> columns;
                           for (std::size_t i = 0; i < 11; ++i) columns.insert({in[0][i], in[0][11 + i]});
                           Values out;
                           for (const auto& column : columns) out.push_back(column.first);
                           for (const auto& column : columns) out.push_back(column.second);
                           return out;
                       },
                   .differentiable = false,
                   .reads_elements = true});
    all.push_back({.name = "unique_consecutive",
                   .inputs = {{{41}, 0, 2, Kind::label}},
                   .call = [](const Tensors& in) { return unique_consecutive(in[0]).inverse; },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out{0};
                           for (std::size_t i = 1; i < in[0].size(); ++i)
                               out.push_back(out.back() + (in[0][i] != in[0][i - 1] ? 1 : 0));
                           return out;
                       },
                   .differentiable = false,
                   .reads_elements = true});
    all.push_back({.name = "unique_consecutive",
                   .inputs = {{{13, 2}, 0, 2, Kind::label}},
                   .call = [](const Tensors& in) { return unique_consecutive(in[0], 0).counts; },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out{1};
                           for (std::size_t i = 1; i < 13; ++i)
                               if (in[0][2 * i] == in[0][2 * i - 2] && in[0][2 * i + 1] == in[0][2 * i - 1])
                                   ++out.back();
                               else out.push_back(1);
                           return out;
                       },
                   .differentiable = false,
                   .reads_elements = true});
}

void add_fills_and_takes(std::vector<Case>& all) {
    const Input x{{3, 5, 7}}, indices{{4}, 0, 5, Kind::label};
    all.push_back({.name = "index_fill",
                   .inputs = {x, indices},
                   .call = [](const Tensors& in) { return index_fill(in[0], 1, in[1], 3); },
                   .reference = scatter_reference([](double& to, double) { to = 3; })});
    all.push_back({.name = "take",
                   .inputs = {x, {{4, 3}, 0, 105, Kind::label}},
                   .call = [](const Tensors& in) { return take(in[0], in[1]); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (const double at : in[1]) out.push_back(in[0][static_cast<std::size_t>(at)]);
                           return out;
                       }});
}

void add_multi_indices(std::vector<Case>& all) {
    const Shape from{3, 5, 7};
    const Input x{from};
    // (4, 2) over axes of 3 and 5; every label is below 3.
    const Input pairs{{4, 2}, 0, 3, Kind::label};
    const auto pair = [](const Columns& in, std::size_t column_number, std::int64_t i) {
        const auto at = static_cast<std::size_t>(2 * i);
        return std::pair(to_integer(in[column_number][at]), to_integer(in[column_number][at + 1]));
    };
    all.push_back({.name = "gather_nd",
                   .inputs = {x, pairs},
                   .call = [](const Tensors& in) { return gather_nd(in[0], in[1]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table({4, 7}, [&](const Dims& at) {
                               const auto [a, b] = pair(in, 1, at[0]);
                               return element(in[0], from, {a, b, at[1]});
                           });
                       }});
    all.push_back({.name = "scatter_nd",
                   .inputs = {pairs, {{4, 7}}},
                   .call =
                       [](const Tensors& in) {
                           return scatter_nd(in[0], in[1], {3, 5, 7});
                       },
                   .reference =
                       [=](const Columns& in, DType) {
                           Values out(105, 0);
                           for (std::int64_t i = 0; i < 4; ++i) {
                               const auto [a, b] = pair(in, 0, i);
                               for (std::int64_t k = 0; k < 7; ++k)
                                   out[static_cast<std::size_t>((a * 5 + b) * 7 + k)] += element(in[1], {4, 7}, {i, k});
                           }
                           return out;
                       },
                   .terms = 4});
    const Input first{{4, 1}, 0, 3, Kind::label}, last{{2}, 0, 7, Kind::label};
    all.push_back({.name = "index",
                   .inputs = {x, first, last},
                   .call =
                       [](const Tensors& in) {
                           return declivity::index(in[0], {in[1], Tensor(), in[2]});
                       },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table({4, 2, 5}, [&](const Dims& at) {
                               return element(in[0], from,
                                              {to_integer(in[1][static_cast<std::size_t>(at[0])]), at[2],
                                               to_integer(in[2][static_cast<std::size_t>(at[1])])});
                           });
                       }});
    for (const bool accumulate : {false, true})
        all.push_back(
            {.name = "index_put",
             .inputs = {x, {{4}, 0, 5, Kind::label}, {{3, 4, 1}}},
             .call =
                 [accumulate](const Tensors& in) {
                     return index_put(in[0], {Tensor(), in[1]}, in[2], accumulate);
                 },
             .reference =
                 [=](const Columns& in, DType) {
                     Values out = in[0];
                     for_each_index({3, 4, 7}, [&](const Dims& at) {
                         double& to =
                             out[static_cast<std::size_t>((at[0] * 5 + selected_index(in, at[1])) * 7 + at[2])];
                         to = (accumulate ? to : 0) + element(in[2], {3, 4, 1}, {at[0], at[1], 0});
                     });
                     return out;
                 },
             .terms = 4});
}

void add_masks(std::vector<Case>& all) {
    const Shape from{3, 5, 7};
    const Input x{from};
    const Input mask{{5, 1}, 0, 1, Kind::boolean};
    const auto masked = [](const Columns& in, const Dims& at) { return in[1][static_cast<std::size_t>(at[1])] != 0; };
    all.push_back({.name = "masked_fill",
                   .inputs = {x, mask},
                   .call = [](const Tensors& in) { return masked_fill(in[0], in[1], 5); },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table(from, [&](const Dims& at) {
                               return masked(in, at) ? 5 : element(in[0], from, {at[0], at[1], at[2]});
                           });
                       }});
    all.push_back({.name = "masked_select",
                   .inputs = {x, mask},
                   .call = [](const Tensors& in) { return masked_select(in[0], in[1]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           Values out;
                           for_each_index(from, [&](const Dims& at) {
                               if (masked(in, at)) out.push_back(element(in[0], from, {at[0], at[1], at[2]}));
                           });
                           return out;
                       },
                   .reads_elements = true});
    all.push_back({.name = "masked_scatter",
                   .inputs = {x, mask, {{105}}},
                   .call = [](const Tensors& in) { return masked_scatter(in[0], in[1], in[2]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           std::size_t next = 0;
                           return table(from, [&](const Dims& at) {
                               return masked(in, at) ? in[2][next++] : element(in[0], from, {at[0], at[1], at[2]});
                           });
                       }});
    all.push_back({.name = "nonzero",
                   .inputs = {{{4, 3}, 0, 2, Kind::label}},
                   .call = [](const Tensors& in) { return nonzero(in[0]); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (std::size_t i = 0; i < 12; ++i)
                               if (in[0][i] != 0)
                                   out.push_back(static_cast<double>(i / 3)), out.push_back(static_cast<double>(i % 3));
                           return out;
                       },
                   .differentiable = false,
                   .reads_elements = true});
}

void add_one_hot_and_bincount(std::vector<Case>& all) {
    all.push_back({.name = "one_hot",
                   .inputs = {{{4, 3}, 0, 5, Kind::label}},
                   .call = [](const Tensors& in) { return one_hot(in[0], 6); },
                   .reference =
                       [](const Columns& in, DType) {
                           return table({4, 3, 6}, [&](const Dims& at) {
                               return element(in[0], {4, 3}, {at[0], at[1]}) == static_cast<double>(at[2]) ? 1.0 : 0.0;
                           });
                       },
                   .differentiable = false});
    all.push_back({.name = "bincount",
                   .inputs = {{{20}, 0, 5, Kind::label}},
                   .call = [](const Tensors& in) { return bincount(in[0], {}, 7); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(7, 0);
                           for (const double input : in[0]) out[static_cast<std::size_t>(input)] += 1;
                           return out;
                       },
                   .differentiable = false,
                   .reads_elements = true});
}

}  // namespace

std::vector<Case> index_catalogue() {
    std::vector<Case> all;
    add_gathers_and_scatters(all);
    add_selections(all);
    add_unique_values(all);
    add_fills_and_takes(all);
    add_multi_indices(all);
    add_masks(all);
    add_one_hot_and_bincount(all);
    return all;
}

}  // namespace declivity::test::catalogue
