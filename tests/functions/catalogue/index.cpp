// Functions of shapes, indices, order and scans as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

void add_shapes(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = [&](const std::string& name, const Shape& from, const Shape& to,
                         std::function<Tensor(const Tensor&)> call, std::function<MultiIndex(const Dims&)> index_of) {
        all.push_back(indexed_case(name, from, to, std::move(call), std::move(index_of)));
    };
    const auto itself = [](const Dims& at) { return MultiIndex{at[0], at[1], at[2]}; };
    add(
        "unsqueeze", shape, {3, 5, 1, 7}, [](const Tensor& x) { return unsqueeze(x, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1], at[3]};
        });
    add(
        "squeeze", {3, 1, 5}, {3, 5}, [](const Tensor& x) { return squeeze(x); },
        [](const Dims& at) {
            return MultiIndex{at[0], 0, at[1]};
        });
    add(
        "movedim", shape, {5, 7, 3}, [](const Tensor& x) { return movedim(x, 0, -1); },
        [](const Dims& at) {
            return MultiIndex{at[2], at[0], at[1]};
        });
    add(
        "unflatten", {3, 10}, {3, 2, 5},
        [](const Tensor& x) {
            return unflatten(x, 1, {2, -1});
        },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] * 5 + at[2]};
        });
    add(
        "broadcast_to", {5, 1}, {3, 5, 7},
        [](const Tensor& x) {
            return broadcast_to(x, {3, 5, 7});
        },
        [](const Dims& at) {
            return MultiIndex{at[1], 0};
        });
    add(
        "broadcast_tensors", {5, 1}, {10, 7},
        [](const Tensor& x) {
            return cat(broadcast_tensors({x, expand(x, {5, 7})}), 0);
        },
        [](const Dims& at) {
            return MultiIndex{at[0] % 5, 0};
        });
    all.back().error_name = "expand";
    add(
        "stack", shape, {3, 2, 5, 7},
        [](const Tensor& x) {
            return stack({x, x}, 1);
        },
        [](const Dims& at) {
            return MultiIndex{at[0], at[2], at[3]};
        });
    add(
        "split", shape, shape, [](const Tensor& x) { return concat_reversed(split(x, 2, 1), 1); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] == 0 ? 4 : at[1] < 3 ? at[1] + 1 : at[1] - 3, at[2]};
        });
    add(
        "split", shape, shape,
        [](const Tensor& x) {
            return concat_reversed(split(x, {1, 4}, 1), 1);
        },
        [](const Dims& at) {
            return MultiIndex{at[0], (at[1] + 1) % 5, at[2]};
        });
    add(
        "chunk", shape, shape, [](const Tensor& x) { return concat_reversed(chunk(x, 3, -1), 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1], at[2] == 0 ? 6 : at[2] < 4 ? at[2] + 2 : at[2] - 4};
        });
    add(
        "unbind", shape, {5, 3, 7},
        [](const Tensor& x) {
            auto parts = unbind(x, 1);
            std::ranges::reverse(parts);
            return stack(parts);
        },
        [](const Dims& at) {
            return MultiIndex{at[1], 4 - at[0], at[2]};
        });
    add(
        "repeat", {3, 5}, {2, 6, 15},
        [](const Tensor& x) {
            return repeat(x, {2, 2, 3});
        },
        [](const Dims& at) {
            return MultiIndex{at[1] % 3, at[2] % 5};
        });
    add(
        "tile", {3, 5}, {3, 10}, [](const Tensor& x) { return tile(x, {2}); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] % 5};
        });
    add(
        "repeat_interleave", shape, {3, 10, 7}, [](const Tensor& x) { return repeat_interleave(x, 2, 1); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] / 2, at[2]};
        });
    add(
        "flip", shape, shape,
        [](const Tensor& x) {
            return flip(x, {0, 2});
        },
        [](const Dims& at) {
            return MultiIndex{2 - at[0], at[1], 6 - at[2]};
        });
    add(
        "roll", shape, shape,
        [](const Tensor& x) {
            return roll(x, {2, -3}, {1, 2});
        },
        [](const Dims& at) {
            return MultiIndex{at[0], (at[1] + 3) % 5, (at[2] + 3) % 7};
        });
    add(
        "rot90", {3, 5}, {5, 3}, [](const Tensor& x) { return rot90(x, 1); },
        [](const Dims& at) {
            return MultiIndex{at[1], 4 - at[0]};
        });
    add(
        "meshgrid", {3}, {3, 3},
        [](const Tensor& x) {
            return meshgrid({x, reshape(x, {x.numel()})}, "ij")[1] * 1;
        },
        [](const Dims& at) { return MultiIndex{at[1]}; });
    all.back().error_name = "numel";
    add(
        "cartesian_prod", {3}, {9, 2},
        [](const Tensor& x) {
            return cartesian_prod({x, x});
        },
        [](const Dims& at) { return MultiIndex{at[1] == 0 ? at[0] / 3 : at[0] % 3}; });
    all.push_back(indexed_case(
        "diagonal", shape, {3, 5}, [](const Tensor& x) { return diagonal(x, 1, 1, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1], at[1] + 1};
        }));
    add(
        "tril", shape, shape, [](const Tensor& x) { return tril(x, 1); },
        [itself](const Dims& at) { return at[2] - at[1] <= 1 ? itself(at) : MultiIndex{}; });
    add(
        "triu", shape, shape, [](const Tensor& x) { return triu(x, -1); },
        [itself](const Dims& at) { return at[2] - at[1] >= -1 ? itself(at) : MultiIndex{}; });
    add(
        "diag", {5}, {6, 6}, [](const Tensor& x) { return diag(x, -1); },
        [](const Dims& at) { return at[1] - at[0] == -1 ? MultiIndex{at[1]} : MultiIndex{}; });
    add(
        "diag_embed", {3, 5}, {3, 7, 7}, [](const Tensor& x) { return diag_embed(x, 2); },
        [](const Dims& at) {
            return at[2] - at[1] == 2 ? MultiIndex{at[0], at[1]} : MultiIndex{};
        });
    add(
        "diag_embed", {3, 5}, {6, 3, 6}, [](const Tensor& x) { return diag_embed(x, -1, 2, 0); },
        [](const Dims& at) {
            return at[0] - at[2] == -1 ? MultiIndex{at[1], at[0]} : MultiIndex{};
        });
    add(
        "pixel_shuffle", {2, 8, 3, 5}, {2, 2, 6, 10}, [](const Tensor& x) { return pixel_shuffle(x, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] * 4 + at[2] % 2 * 2 + at[3] % 2, at[2] / 2, at[3] / 2};
        });
    add(
        "pixel_unshuffle", {2, 2, 6, 10}, {2, 8, 3, 5}, [](const Tensor& x) { return pixel_unshuffle(x, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] / 4, at[2] * 2 + at[1] / 2 % 2, at[3] * 2 + at[1] % 2};
        });
    add(
        "depth_to_space", {2, 8, 3, 5}, {2, 2, 6, 10}, [](const Tensor& x) { return depth_to_space(x, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], (at[2] % 2 * 2 + at[3] % 2) * 2 + at[1], at[2] / 2, at[3] / 2};
        });
    add(
        "space_to_depth", {2, 2, 6, 10}, {2, 8, 3, 5}, [](const Tensor& x) { return space_to_depth(x, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] % 2, at[2] * 2 + at[1] / 4, at[3] * 2 + at[1] / 2 % 2};
        });
}

void add_indices(std::vector<Case>& all) {
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
    // Indices (4) along axis 1.
    const Input indices{{4}, 0, 5, Kind::label}, rows{{3, 4, 7}};
    const auto number = [](const Columns& in, std::int64_t i) {
        return to_integer(in[1][static_cast<std::size_t>(i)]);
    };
    all.push_back({.name = "index_select",
                   .inputs = {x, indices},
                   .call = [](const Tensors& in) { return index_select(in[0], 1, in[1]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           return table({3, 4, 7}, [&](const Dims& at) {
                               return element(in[0], from, {at[0], number(in, at[1]), at[2]});
                           });
                       }});
    const auto scatter_reference = [=](const std::function<void(double&, double)>& join) {
        return [=](const Columns& in, DType) {
            Values out = in[0];
            for_each_index({3, 4, 7}, [&](const Dims& at) {
                join(out[static_cast<std::size_t>((at[0] * 5 + number(in, at[1])) * 7 + at[2])],
                     in.size() > 2 ? element(in[2], {3, 4, 7}, {at[0], at[1], at[2]}) : 0);
            });
            return out;
        };
    };
    all.push_back({.name = "index_add",
                   .inputs = {x, indices, rows},
                   .call = [](const Tensors& in) { return index_add(in[0], 1, in[1], in[2], 0.5); },
                   .reference = scatter_reference([](double& to, double item) { to += 0.5 * item; }),
                   .terms = 4});
    all.push_back({.name = "index_copy",
                   .inputs = {x, indices, rows},
                   .call = [](const Tensors& in) { return index_copy(in[0], 1, in[1], in[2]); },
                   .reference = scatter_reference([](double& to, double value) { to = value; })});
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
        all.push_back({.name = "index_put",
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
                                       out[static_cast<std::size_t>((at[0] * 5 + number(in, at[1])) * 7 + at[2])];
                                   to = (accumulate ? to : 0) + element(in[2], {3, 4, 1}, {at[0], at[1], 0});
                               });
                               return out;
                           },
                       .terms = 4});
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

void add_lines(std::vector<Case>& all) {
    const auto fold = [](const std::function<double(double, double)>& join) {
        return [join](const Values& x) {
            Values out{x[0]};
            for (std::size_t i = 1; i < x.size(); ++i) out.push_back(join(out.back(), x[i]));
            return out;
        };
    };
    const auto largest = [](double a, double b) { return std::max(a, b); };
    const auto smallest = [](double a, double b) { return std::min(a, b); };
    all.push_back(axis_case(
        "cumsum", [](const Tensor& x) { return cumsum(x, 1); }, fold([](double a, double b) { return a + b; })));
    all.push_back(axis_case(
        "cumprod", [](const Tensor& x) { return cumprod(x, 1); }, fold([](double a, double b) { return a * b; })));
    all.push_back(axis_case(
        "logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, 1); },
        fold([](double a, double b) { return std::log(std::exp(a) + std::exp(b)); })));
    all.push_back(axis_case(
        "cummax", [](const Tensor& x) { return cummax(x, 1).values; }, fold(largest)));
    all.push_back(axis_case(
        "cummin", [](const Tensor& x) { return cummin(x, 1).values; }, fold(smallest)));
    all.push_back(axis_case(
        "sort", [](const Tensor& x) { return sort(x, 1).values; }, sorted_values));
    all.push_back(axis_case(
        "argsort", [](const Tensor& x) { return argsort(x, 1); },
        [](const Values& x) {
            std::vector<std::size_t> order(x.size());
            std::iota(order.begin(), order.end(), 0);
            std::ranges::stable_sort(order, {}, [&](std::size_t i) { return x[i]; });
            return Values(order.begin(), order.end());
        },
        false));
    all.push_back(axis_case(
        "kthvalue", [](const Tensor& x) { return kthvalue(x, 2, 1, true).values; },
        [](const Values& x) { return Values{sorted_values(x)[1]}; }));
    all.push_back(axis_case(
        "median", [](const Tensor& x) { return median(x, 1, true).values; },
        [](const Values& x) { return Values{sorted_values(x)[2]}; }));
    all.push_back(axis_case(
        "quantile", [](const Tensor& x) { return quantile(x, 0.4, 1, true); },
        [](const Values& x) {
            const Values s = sorted_values(x);
            return Values{s[1] + 0.6 * (s[2] - s[1])};
        }));
    all.push_back(axis_case(
        "mode", [](const Tensor& x) { return mode(x, 1, true).values; },
        [](const Values& x) { return Values{sorted_values(x)[0]}; }));
    const auto scalar = [](double x) { return Values{x}; };
    const auto sum_of = [](const Values& x, const std::function<double(double)>& f) {
        double out = 0;
        for (const double value : x) out += f(value);
        return out;
    };
    const auto variance = [sum_of](const Values& x) {
        const double mean = sum_of(x, [](double v) { return v; }) / 5;
        return sum_of(x, [mean](double v) { return (v - mean) * (v - mean); }) / 4;
    };
    all.push_back(axis_case(
        "amax", [](const Tensor& x) { return amax(x, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::max(x)); }));
    all.push_back(axis_case(
        "amin", [](const Tensor& x) { return amin(x, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::min(x)); }));
    all.push_back(axis_case(
        "aminmax", [](const Tensor& x) { return aminmax(x, {1}, true).max - aminmax(x, {1}, true).min; },
        [scalar](const Values& x) { return scalar(std::ranges::max(x) - std::ranges::min(x)); }));
    all.back().error_name = "aminmax";
    all.push_back(axis_case(
        "argmin", [](const Tensor& x) { return argmin(x, 1, true); },
        [scalar](const Values& x) { return scalar(static_cast<double>(std::ranges::min_element(x) - x.begin())); },
        false));
    all.push_back(axis_case(
        "prod", [](const Tensor& x) { return prod(x, {1}, true); },
        [scalar](const Values& x) { return scalar(std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>())); }));
    all.push_back(axis_case(
        "var", [](const Tensor& x) { return var(x, {1}, 1, true); },
        [=](const Values& x) { return scalar(variance(x)); }, true, 10));
    all.push_back(axis_case(
        "stddev", [](const Tensor& x) { return stddev(x, {1}, 1, true); },
        [=](const Values& x) { return scalar(std::sqrt(variance(x))); }, true, 10));
    all.push_back(axis_case(
        "norm", [](const Tensor& x) { return norm(x, 2, {1}, true); },
        [=](const Values& x) { return scalar(std::sqrt(sum_of(x, [](double v) { return v * v; }))); }));
    all.push_back(axis_case(
        "norm", [](const Tensor& x) { return norm(x, 3, {1}, true); },
        [=](const Values& x) { return scalar(std::cbrt(sum_of(x, [](double v) { return std::abs(v * v * v); }))); },
        true, 20));
    all.push_back(axis_case(
        "logsumexp", [](const Tensor& x) { return logsumexp(x, {1}, true); },
        [=](const Values& x) { return scalar(std::log(sum_of(x, [](double v) { return std::exp(v); }))); }));
    const auto counted = [=](const Values& x) { return sum_of(x, [](double v) { return v > 0 ? 1 : 0; }); };
    all.push_back(axis_case(
        "all", [](const Tensor& x) { return declivity::all(x > -1.5, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::min(x) > -1.5 ? 1 : 0); }, false));
    all.back().error_name = "operator>";
    all.push_back(axis_case(
        "any", [](const Tensor& x) { return any(x > 1.5, {1}, true); },
        [scalar](const Values& x) { return scalar(std::ranges::max(x) > 1.5 ? 1 : 0); }, false));
    all.back().error_name = "operator>";
    all.push_back(axis_case(
        "count_nonzero", [](const Tensor& x) { return count_nonzero(x > 0, {1}, true); },
        [=](const Values& x) { return scalar(counted(x)); }, false));
    all.back().error_name = "operator>";
    const auto searched = [](const Columns& in) {
        Values out;
        for (const double value : in[0])
            out.push_back(static_cast<double>(std::ranges::lower_bound(in[1], value) - in[1].begin()));
        return out;
    };
    // Boundaries are sorted by the call.
    for (const bool buckets : {false, true})
        all.push_back({.name = buckets ? "bucketize" : "searchsorted",
                       .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}, {{9}, -2, 2, Kind::constant}},
                       .call =
                           [buckets](const Tensors& in) {
                               if (!in[1].defined() || !in[0].defined())
                                   return buckets ? bucketize(in[0], in[1]) : searchsorted(in[1], in[0]);
                               const Tensor sorted = sort(in[1]).values;
                               return buckets ? bucketize(in[0], sorted) : searchsorted(sorted, in[0]);
                           },
                       .reference =
                           [searched](const Columns& in, DType) {
                               return searched({in[0], sorted_values(in[1])});
                           },
                       .differentiable = false});
    all.push_back({.name = "histc",
                   .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}},
                   .call = [](const Tensors& in) { return histc(in[0], 8, -1, 1); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(8, 0);
                           for (const double x : in[0])
                               if (x >= -1 && x <= 1)
                                   out[std::min<std::size_t>(7, static_cast<std::size_t>((x + 1) * 4))] += 1;
                           return out;
                       },
                   .differentiable = false});
    all.push_back({.name = "histogram",
                   .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}, {{3, 5, 7}, -1, 3, Kind::constant}},
                   .call =
                       [](const Tensors& in) {
                           return histogram(in[0], 8, {.low = -1, .high = 1, .weight = in[1], .density = true}).counts;
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(8, 0);
                           double total = 0;
                           for (std::size_t i = 0; i < in[0].size(); ++i) {
                               if (in[0][i] < -1 || in[0][i] > 1) continue;
                               out[std::min<std::size_t>(7, static_cast<std::size_t>((in[0][i] + 1) * 4))] += in[1][i];
                               total += in[1][i];
                           }
                           for (double& count : out) count /= total * 0.25;
                           return out;
                       },
                   .differentiable = false,
                   .terms = 105,
                   .first_optional = 1,
                   .reduced_precision = false});
    all.push_back({.name = "histogram",
                   .inputs = {{{4, 9}, -2, 2, Kind::constant}, {{4}, 0.125, 0.625, Kind::constant}},
                   .call = [](const Tensors& in) { return histogram(in[0], cumsum(in[1], 0) - 1.25).counts; },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out(3, 0), edges(4, -1.25);
                           for (std::size_t i = 0; i < 4; ++i)
                               for (std::size_t j = 0; j <= i; ++j) edges[i] += in[1][j];
                           for (const double x : in[0])
                               if (x >= edges[0] && x <= edges[3]) out[x < edges[1] ? 0 : x < edges[2] ? 1 : 2] += 1;
                           return out;
                       },
                   .differentiable = false,
                   .first_optional = 1,  // cumsum has its own errors
                   .reduced_precision = false});
    for (const bool low : {true, false})
        all.push_back({.name = low ? "clamp_min" : "clamp_max",
                       .inputs = {{{3, 5, 7}}},
                       .call = [low](const Tensors& in) { return low ? clamp_min(in[0], 0.5) : clamp_max(in[0], 0.5); },
                       .reference =
                           [low](const Columns& in, DType) {
                               Values out;
                               for (const double x : in[0]) out.push_back(low ? std::max(x, 0.5) : std::min(x, 0.5));
                               return out;
                           },
                       .sampled = true});
}

}  // namespace

std::vector<Case> index_catalogue() {
    std::vector<Case> all;
    add_shapes(all);
    add_indices(all);
    add_lines(all);
    return all;
}

}  // namespace declivity::test::catalogue
