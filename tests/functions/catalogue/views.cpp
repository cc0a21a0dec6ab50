// Selections and views, and what writes into them, as cases of the catalogue.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

void add_reshapes_and_permutations(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "where",
         .inputs = {{{5, 1}, 0, 1, Kind::boolean}, {{3, 5, 7}}, {{7}}},
         .call = [](const Tensors& in) { return where(in[0], in[1], in[2]); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 5, 7}, [&](const Dims& at) {
                     return in[0][static_cast<std::size_t>(at[1])] != 0
                                ? in[1][flat_index({3, 5, 7}, {at[0], at[1], at[2]})]
                                : in[2][static_cast<std::size_t>(at[2])];
                 });
             }});
    const auto same = [](const Columns& in, DType) { return in[0]; };
    add({.name = "reshape",
         .inputs = {{{3, 5, 7}}},
         .call =
             [](const Tensors& in) {
                 return reshape(in[0], {7, -1, 5});
             },
         .reference = same});
    add({.name = "flatten",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return flatten(in[0]); },
         .reference = same});
    add({.name = "permute",
         .inputs = {{{3, 5, 7}}},
         .call =
             [](const Tensors& in) {
                 return permute(in[0], {2, 0, 1});
             },
         .reference =
             [](const Columns& in, DType) {
                 return table({7, 3, 5}, [&](const Dims& at) {
                     return in[0][flat_index({3, 5, 7}, {at[1], at[2], at[0]})];
                 });
             }});
    add({.name = "transpose",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return transpose(in[0], 0, -1); },
         .reference =
             [](const Columns& in, DType) {
                 return table({7, 5, 3}, [&](const Dims& at) {
                     return in[0][flat_index({3, 5, 7}, {at[2], at[1], at[0]})];
                 });
             }});
}

void add_slices(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "slice",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return slice(in[0], 2, 1, -1, 2); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 5, 3}, [&](const Dims& at) {
                     return in[0][flat_index({3, 5, 7}, {at[0], at[1], 1 + 2 * at[2]})];
                 });
             }});
    add({.name = "select",
         .inputs = {{{3, 5, 7}}},
         .call = [](const Tensors& in) { return select(in[0], 1, -2); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 7}, [&](const Dims& at) { return in[0][flat_index({3, 5, 7}, {at[0], 3, at[1]})]; });
             }});
    add({.name = "slice_scatter",
         .inputs = {{{3, 5, 7}}, {{3, 5, 3}}},
         .call = [](const Tensors& in) { return slice_scatter(in[0], in[1], 2, 1, -1, 2); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 5, 7}, [&](const Dims& at) {
                     return at[2] % 2 == 1 ? in[1][flat_index({3, 5, 3}, {at[0], at[1], at[2] / 2})]
                                           : in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})];
                 });
             }});
    add({.name = "select_scatter",
         .inputs = {{{3, 5, 7}}, {{3, 7}}},
         .call = [](const Tensors& in) { return select_scatter(in[0], in[1], 1, -2); },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 5, 7}, [&](const Dims& at) {
                     return at[1] == 3 ? in[1][flat_index({3, 7}, {at[0], at[2]})]
                                       : in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})];
                 });
             }});
}

void add_expand_concat_and_pad(std::vector<Case>& all) {
    const auto add = adder(all);
    add({.name = "expand",
         .inputs = {{{5, 1}}},
         .call =
             [](const Tensors& in) {
                 return expand(in[0], {3, 5, 7});
             },
         .reference =
             [](const Columns& in, DType) {
                 return table({3, 5, 7}, [&](const Dims& at) { return in[0][static_cast<std::size_t>(at[1])]; });
             }});
    for (const auto& [name, function] : {std::pair<std::string, decltype(&concat)>{"concat", &concat}, {"cat", &cat}})
        add({.name = name,
             .inputs = {{{3, 5, 7}}, {{3, 2, 7}}},
             .call =
                 [function = function](const Tensors& in) {
                     return function({in[0], in[1]}, 1);
                 },
             .reference =
                 [](const Columns& in, DType) {
                     return table({3, 7, 7}, [&](const Dims& at) {
                         return at[1] < 5 ? in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})]
                                          : in[1][flat_index({3, 2, 7}, {at[0], at[1] - 5, at[2]})];
                     });
                 }});
    add({.name = "pad",
         .inputs = {{{3, 5, 7}}},
         .call =
             [](const Tensors& in) {
                 return pad(in[0], {0, 1, 2}, {1, 0, 3}, 9);
             },
         .reference =
             [](const Columns& in, DType) {
                 return table({4, 6, 12}, [&](const Dims& at) {
                     const bool inside = at[0] < 3 && at[1] >= 1 && at[2] >= 2 && at[2] < 9;
                     return inside ? in[0][flat_index({3, 5, 7}, {at[0], at[1] - 1, at[2] - 2})] : 9.0;
                 });
             }});
}

}  // namespace

std::vector<Case> view_catalogue() {
    std::vector<Case> all;
    add_reshapes_and_permutations(all);
    add_slices(all);
    add_expand_concat_and_pad(all);
    return all;
}

}  // namespace declivity::test::catalogue
