// Functions of shapes as cases of the catalogue: views, parts, repetitions, permutations, diagonals, blocks of pixels.
#include <algorithm>
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

/// Appends an indexed_case to `all`.
auto adder_of_shapes(std::vector<Case>& all) {
    return [&all](const std::string& name, const Shape& from, const Shape& to,
                  std::function<Tensor(const Tensor&)> call, std::function<MultiIndex(const Dims&)> index_of) {
        all.push_back(indexed_case(name, from, to, std::move(call), std::move(index_of)));
    };
}

void add_axes_and_broadcasts(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = adder_of_shapes(all);
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
}

void add_parts(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = adder_of_shapes(all);
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
}

void add_repetitions(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = adder_of_shapes(all);
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
}

void add_flips_and_grids(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = adder_of_shapes(all);
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
}

void add_diagonals(std::vector<Case>& all) {
    const Shape shape{3, 5, 7};
    const auto add = adder_of_shapes(all);
    const auto itself = [](const Dims& at) { return MultiIndex{at[0], at[1], at[2]}; };
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
}

void add_pixel_blocks(std::vector<Case>& all) {
    const auto add = adder_of_shapes(all);
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

}  // namespace

std::vector<Case> shape_catalogue() {
    std::vector<Case> all;
    add_axes_and_broadcasts(all);
    add_parts(all);
    add_repetitions(all);
    add_flips_and_grids(all);
    add_diagonals(all);
    add_pixel_blocks(all);
    return all;
}

}  // namespace declivity::test::catalogue
