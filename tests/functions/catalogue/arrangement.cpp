// The functions of arrangement.hpp as cases of the catalogue.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

/// Each element of the result is one of two inputs, by input number and index, or 0 without an index.
Case indexed_pair_case(const std::string& name, const Shape& a, const Shape& b, const Shape& to,
                       std::function<Tensor(const Tensor&, const Tensor&)> call,
                       std::function<std::pair<int, MultiIndex>(const Dims&)> index_of) {
    return {.name = name,
            .inputs = {{a}, {b}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0], in[1]); },
            .reference =
                [a, b, to, index_of = std::move(index_of)](const Columns& in, DType) {
                    return table(to, [&](const Dims& at) {
                        const auto [input, index] = index_of(at);
                        return index.empty() ? 0.0
                                             : element(in[static_cast<std::size_t>(input)], input == 0 ? a : b, index);
                    });
                },
            .sampled = true};
}

void add_concatenations(std::vector<Case>& all) {
    using InputIndex = std::pair<int, MultiIndex>;
    all.push_back(indexed_pair_case(
        "hstack", {3, 5}, {3, 2}, {3, 7},
        [](const Tensor& a, const Tensor& b) {
            return hstack({a, b});
        },
        [](const Dims& at) {
            return at[1] < 5 ? InputIndex(0, {at[0], at[1]}) : InputIndex(1, {at[0], at[1] - 5});
        }));
    all.push_back(indexed_pair_case(
        "hstack", {3}, {5}, {8},
        [](const Tensor& a, const Tensor& b) {
            return hstack({a, b});
        },
        [](const Dims& at) { return at[0] < 3 ? InputIndex(0, {at[0]}) : InputIndex(1, {at[0] - 3}); }));
    all.push_back(indexed_pair_case(
        "vstack", {5}, {3, 5}, {4, 5},
        [](const Tensor& a, const Tensor& b) {
            return vstack({a, b});
        },
        [](const Dims& at) {
            return at[0] == 0 ? InputIndex(0, {at[1]}) : InputIndex(1, {at[0] - 1, at[1]});
        }));
    all.push_back(indexed_pair_case(
        "dstack", {3, 5}, {3, 5, 2}, {3, 5, 3},
        [](const Tensor& a, const Tensor& b) {
            return dstack({a, b});
        },
        [](const Dims& at) {
            return at[2] == 0 ? InputIndex(0, {at[0], at[1]}) : InputIndex(1, {at[0], at[1], at[2] - 1});
        }));
    all.push_back(indexed_pair_case(
        "block_diag", {3, 2}, {5}, {4, 7},
        [](const Tensor& a, const Tensor& b) {
            return block_diag({a, b});
        },
        [](const Dims& at) {
            if (at[0] < 3) return at[1] < 2 ? InputIndex(0, {at[0], at[1]}) : InputIndex(0, {});
            return at[1] < 2 ? InputIndex(0, {}) : InputIndex(1, {at[1] - 2});
        }));
}

void add_permutations(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = [&](const std::string& name, const Shape& from, const Shape& to,
                         std::function<Tensor(const Tensor&)> call, std::function<MultiIndex(const Dims&)> index_of) {
        all.push_back(indexed_case(name, from, to, std::move(call), std::move(index_of)));
    };
    add("atleast_1d", {5}, {5}, atleast_1d, [](const Dims& at) { return MultiIndex{at[0]}; });
    add("atleast_2d", {5}, {1, 5}, atleast_2d, [](const Dims& at) { return MultiIndex{at[1]}; });
    add("atleast_3d", {5}, {1, 5, 1}, atleast_3d, [](const Dims& at) { return MultiIndex{at[1]}; });
    add(
        "diagflat", {2, 3}, {7, 7}, [](const Tensor& x) { return diagflat(x, 1); },
        [](const Dims& at) {
            return at[1] - at[0] == 1 ? MultiIndex{at[0] / 3, at[0] % 3} : MultiIndex{};
        });
    add(
        "narrow", shape, {3, 2, 7}, [](const Tensor& x) { return narrow(x, 1, -3, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] + 2, at[2]};
        });
    add(
        "tensor_split", shape, shape, [](const Tensor& x) { return concat_reversed(tensor_split(x, 3, 2), 2); },
        [](const Dims& at) {
            // Parts of 3, 2 and 2.
            return MultiIndex{at[0], at[1], at[2] < 2 ? at[2] + 5 : at[2] < 4 ? at[2] + 1 : at[2] - 4};
        });
    add(
        "tensor_split", shape, shape,
        [](const Tensor& x) {
            return concat_reversed(tensor_split(x, std::vector<std::int64_t>{1, -2, 9}, 1), 1);
        },
        [](const Dims& at) {
            // Parts of 1, 2, 2 and 0.
            return MultiIndex{at[0], at[1] < 2 ? at[1] + 3 : at[1] < 4 ? at[1] - 1 : 0, at[2]};
        });
    add(
        "swapaxes", shape, {7, 5, 3}, [](const Tensor& x) { return swapaxes(x, 0, -1); },
        [](const Dims& at) {
            return MultiIndex{at[2], at[1], at[0]};
        });
    add(
        "moveaxis", shape, {5, 7, 3}, [](const Tensor& x) { return moveaxis(x, 0, -1); },
        [](const Dims& at) {
            return MultiIndex{at[2], at[0], at[1]};
        });
    add(
        "moveaxis", shape, {7, 3, 5},
        [](const Tensor& x) {
            return moveaxis(x, {0, 1}, {1, 2});
        },
        [](const Dims& at) {
            return MultiIndex{at[1], at[2], at[0]};
        });
    add("ravel", {3, 5}, {15}, ravel, [](const Dims& at) { return MultiIndex{at[0] / 5, at[0] % 5}; });
    add("fliplr", shape, shape, fliplr, [](const Dims& at) { return MultiIndex{at[0], 4 - at[1], at[2]}; });
    add("flipud", shape, shape, flipud, [](const Dims& at) { return MultiIndex{2 - at[0], at[1], at[2]}; });
    add(
        "combinations", {5}, {10, 3}, [](const Tensor& x) { return combinations(x, 3); },
        [](const Dims& at) {
            std::int64_t row = 0;
            for (std::int64_t i = 0; i < 5; ++i)
                for (std::int64_t j = i + 1; j < 5; ++j)
                    for (std::int64_t k = j + 1; k < 5; ++k)
                        if (row++ == at[0]) return MultiIndex{at[1] == 0 ? i : at[1] == 1 ? j : k};
            return MultiIndex{};
        });
    add(
        "combinations", {5}, {15, 2}, [](const Tensor& x) { return combinations(x, 2, true); },
        [](const Dims& at) {
            std::int64_t row = 0;
            for (std::int64_t i = 0; i < 5; ++i)
                for (std::int64_t j = i; j < 5; ++j)
                    if (row++ == at[0]) return MultiIndex{at[1] == 0 ? i : j};
            return MultiIndex{};
        });
}

void add_by_example(std::vector<Case>& all) {
    const auto add = [&](const std::string& name, const Shape& from, const Shape& to,
                         Tensor (*call)(const Tensor&, const Tensor&),
                         std::function<MultiIndex(const Dims&)> index_of) {
        Case test_case = indexed_case(
            name, from, to, [](const Tensor& x) { return x; }, std::move(index_of));
        test_case.inputs.push_back({to, -2, 2, Kind::constant});
        test_case.call = [call](const Tensors& in) { return call(in[0], in[1]); };
        all.push_back(std::move(test_case));
    };
    add("expand_as", {5, 1}, {3, 5, 7}, expand_as, [](const Dims& at) { return MultiIndex{at[1], 0}; });
    const auto reshaped_index = [](const Dims& at) {
        return MultiIndex{(at[0] * 3 + at[1]) / 5, (at[0] * 3 + at[1]) % 5};
    };
    add("reshape_as", {3, 5}, {5, 3}, reshape_as, reshaped_index);
    add("view_as", {3, 5}, {5, 3}, view_as, reshaped_index);
    for (const bool flattened : {false, true})
        all.push_back(
            {.name = "take_along_dim",
             .inputs = {{{4, 5}}, {{3, 5}, 0, 4, Kind::label}},
             .call =
                 [flattened](const Tensors& in) {
                     return flattened ? take_along_dim(in[0], in[1]) : take_along_dim(in[0], in[1], 0);
                 },
             .reference =
                 [flattened](const Columns& in, DType) {
                     return table({3, 5}, [&](const Dims& at) {
                         const std::int64_t i = to_integer(element(in[1], {3, 5}, {at[0], at[1]}));
                         return flattened ? in[0][static_cast<std::size_t>(i)] : element(in[0], {4, 5}, {i, at[1]});
                     });
                 },
             .sampled = true});
    all.push_back({.name = "argwhere",
                   .inputs = {{{4, 3}, 0, 2, Kind::label}},
                   .call = [](const Tensors& in) { return argwhere(in[0]); },
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

}  // namespace

std::vector<Case> arrangement_catalogue() {
    std::vector<Case> all;
    add_concatenations(all);
    add_permutations(all);
    add_by_example(all);
    return all;
}

}  // namespace declivity::test::catalogue
