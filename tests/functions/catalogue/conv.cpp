// Convolutions, windows and padding of any number of spatial axes as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
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

/// x, weight and an optional bias.
Values convolved(const Columns& in, const Shape& from, const Shape& filter, const Shape& out, const Windows& windows,
                 std::int64_t groups) {
    return table(out, [&](const Dims& at) {
        double sum = in.size() > 2 ? in[2][static_cast<std::size_t>(at[1])] : 0;
        for (std::int64_t c = 0; c < filter[1]; ++c)
            for_each_index(windows.kernel, [&](const Dims& tap) {
                const std::int64_t channel = at[1] / (filter[0] / groups) * filter[1] + c;
                const auto [index, inside] = index_in_window(windows, from, at, tap, channel);
                MultiIndex weight{at[1], c};
                for (const std::int64_t coordinate : tap) weight.push_back(coordinate);
                if (inside) sum += element(in[0], from, index) * element(in[1], filter, weight);
            });
        return sum;
    });
}

/// Each element of x is added to the window of the result at its position.
Values transposed(const Columns& in, const Shape& from, const Shape& filter, const Shape& out, const Windows& windows,
                  std::int64_t groups) {
    Values sums(static_cast<std::size_t>(out.numel()), 0);
    const auto number = [&](const MultiIndex& index) {
        std::int64_t at = 0;
        for (int axis = 0; axis < out.rank(); ++axis) at = at * out[axis] + index[static_cast<std::size_t>(axis)];
        return static_cast<std::size_t>(at);
    };
    for_each_index(from, [&](const Dims& at) {
        for (std::int64_t o = 0; o < filter[1]; ++o)
            for_each_index(windows.kernel, [&](const Dims& tap) {
                const std::int64_t channel = at[1] / (from[1] / groups) * filter[1] + o;
                const auto [index, inside] = index_in_window(windows, out, at, tap, channel);
                MultiIndex weight{at[1], o};
                for (const std::int64_t coordinate : tap) weight.push_back(coordinate);
                MultiIndex source(at.begin(), at.end());
                if (inside) sums[number(index)] += element(in[0], from, source) * element(in[1], filter, weight);
            });
    });
    if (in.size() > 2) {
        std::size_t i = 0;
        for_each_index(out, [&](const Dims& at) { sums[i++] += in[2][static_cast<std::size_t>(at[1])]; });
    }
    return sums;
}

}  // namespace

void add_convolutions(std::vector<Case>& all) {
    const auto add = [&](const std::string& name, std::vector<Input> inputs, std::function<Tensor(const Tensors&)> call,
                         std::function<Values(const Columns&)> reference, bool sampled) {
        all.push_back(
            {.name = name,
             .inputs = std::move(inputs),
             .call = std::move(call),
             .reference = [reference = std::move(reference)](const Columns& in, DType) { return reference(in); },
             .terms = 20,
             .first_optional = 1,
             .sampled = sampled});
    };
    const auto conv = [&](const std::string& name, const Shape& from, const Shape& filter, const Shape& out,
                          const Windows& windows, std::int64_t groups, bool bias,
                          std::function<Tensor(const Tensors&)> call, bool sampled = true) {
        std::vector<Input> inputs{{from}, {filter}};
        if (bias) inputs.push_back({{out[1]}});
        add(
            name, inputs, std::move(call),
            [=](const Columns& in) { return convolved(in, from, filter, out, windows, groups); }, sampled);
    };
    const auto back = [&](const std::string& name, const Shape& from, const Shape& filter, const Shape& out,
                          const Windows& windows, std::int64_t groups, bool bias,
                          std::function<Tensor(const Tensors&)> call, bool sampled = true) {
        std::vector<Input> inputs{{from}, {filter}};
        if (bias) inputs.push_back({{out[1]}});
        add(
            name, inputs, std::move(call),
            [=](const Columns& in) { return transposed(in, from, filter, out, windows, groups); }, sampled);
    };
    const auto bias_of = [](const Tensors& in) { return in.size() > 2 ? in[2] : Tensor(); };

    conv("conv1d", {2, 2, 6}, {3, 2, 4}, {2, 3, 6}, {{4}, {1}, {1}, {1}}, 1, false,
         [](const Tensors& in) { return conv1d(in[0], in[1], {}, {.padding = "same"}); });
    conv(
        "conv2d", {1, 2, 5, 4}, {2, 2, 2, 3}, {1, 2, 3, 4}, {{2, 3}, {2, 1}, {0, 2}, {1, 1}}, 1, true,
        [=](const Tensors& in) {
            return conv2d(in[0], in[1], bias_of(in), {.stride = {2, 1}, .padding = ConvPadding::sides({0, 2}, {1, 0})});
        });
    conv(
        "conv3d", {2, 2, 3, 4, 3}, {2, 1, 2, 3, 2}, {2, 2, 4, 2, 2}, {{2, 3, 2}, {1, 2, 1}, {1, 1, 0}, {1, 1, 1}}, 2,
        true,
        [=](const Tensors& in) {
            return conv3d(in[0], in[1], bias_of(in), {.stride = {1, 2, 1}, .padding = {1, 1, 0}, .groups = 2});
        },
        false);
    conv("conv3d", {1, 1, 5, 3, 4}, {2, 1, 2, 1, 3}, {1, 2, 2, 3, 4}, {{2, 1, 3}, {2, 1, 1}, {0, 0, 1}, {2, 1, 1}}, 1,
         false, [](const Tensors& in) {
             return conv3d(in[0], in[1], {}, {.stride = {2, 1, 1}, .padding = {0, 0, 1}, .dilation = {2, 1, 1}});
         });
    conv("conv3d", {1, 1, 3, 2, 3}, {1, 1, 2, 3, 2}, {1, 1, 3, 2, 3}, {{2, 3, 2}, {1, 1, 1}, {0, 1, 0}, {1, 1, 1}}, 1,
         false, [](const Tensors& in) { return conv3d(in[0], in[1], {}, {.padding = "same"}); });
    // (3 - 1) 2 - 2 + 2 + 1 + 1
    back(
        "conv_transpose1d", {2, 4, 3}, {4, 2, 3}, {2, 4, 6}, {{3}, {2}, {1}, {1}}, 2, true,
        [=](const Tensors& in) {
            return conv_transpose1d(in[0], in[1], bias_of(in),
                                    {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
        },
        false);
    // An output padding of more than the stride: (3 - 1) 1 + 4 (2 - 1) + 3 + 1
    back("conv_transpose1d", {1, 2, 3}, {2, 1, 2}, {1, 1, 10}, {{2}, {1}, {0}, {4}}, 1, false,
         [](const Tensors& in) { return conv_transpose1d(in[0], in[1], {}, {.output_padding = 3, .dilation = 4}); });
    back("conv_transpose2d", {1, 2, 3, 2}, {2, 2, 2, 3}, {1, 2, 4, 7}, {{2, 3}, {1, 1}, {1, 0}, {3, 2}}, 1, false,
         [](const Tensors& in) {
             return conv_transpose2d(in[0], in[1], {},
                                     {.padding = {1, 0}, .output_padding = {0, 1}, .dilation = {3, 2}});
         });
    // (2 - 1) 2 - 2 + 2 + 1 + 1 = 4, (3 - 1) 1 + 1 + 1 = 4, (2 - 1) 3 - 2 + 2 + 1 + 1 = 5
    back(
        "conv_transpose3d", {2, 2, 2, 3, 2}, {2, 1, 3, 2, 3}, {2, 2, 4, 4, 5},
        {{3, 2, 3}, {2, 1, 3}, {1, 0, 1}, {1, 1, 1}}, 2, true,
        [=](const Tensors& in) {
            return conv_transpose3d(
                in[0], in[1], bias_of(in),
                {.stride = {2, 1, 3}, .padding = {1, 0, 1}, .output_padding = {1, 0, 1}, .groups = 2});
        },
        false);
    // (2 - 1) 1 + 2 (2 - 1) + 1 + 1 = 5
    back("conv_transpose3d", {1, 2, 2, 2, 2}, {2, 1, 2, 1, 2}, {1, 1, 5, 2, 3},
         {{2, 1, 2}, {1, 1, 1}, {0, 0, 0}, {2, 1, 1}}, 1, false, [](const Tensors& in) {
             return conv_transpose3d(in[0], in[1], {}, {.output_padding = {1, 0, 0}, .dilation = {2, 1, 1}});
         });
}

void add_windows(std::vector<Case>& all) {
    const auto add = [&](const std::string& name, const Shape& from, const Shape& to,
                         std::function<Tensor(const Tensor&)> call, std::function<MultiIndex(const Dims&)> index_of,
                         bool sampled = true) {
        all.push_back(indexed_case(name, from, to, std::move(call), std::move(index_of)));
        all.back().sampled = sampled;
    };
    add(
        "unfold_axis", {3, 7, 2}, {3, 3, 2, 3}, [](const Tensor& x) { return unfold_axis(x, 1, 3, 2); },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] * 2 + at[3], at[2]};
        },
        false);
    add(
        "unfold_axis", {9}, {2, 3}, [](const Tensor& x) { return unfold_axis(x, -1, 3, 4); },
        [](const Dims& at) { return MultiIndex{at[0] * 4 + at[1]}; });
    // Windows of 2 x 3, stride (2, 1), padding (1, 0), dilation (1, 2): 3 x 2 of them.
    const UnfoldParameters windows{.kernel_size = {2, 3}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};
    const auto in_image = [](std::int64_t row, std::int64_t window) {
        const std::int64_t h = window / 2 * 2 - 1 + row % 6 / 3, w = window % 2 + row % 3 * 2;
        return std::pair{h, w};
    };
    add(
        "unfold", {2, 2, 4, 6}, {2, 12, 6}, [=](const Tensor& x) { return unfold(x, windows); },
        [=](const Dims& at) {
            const auto [h, w] = in_image(at[1], at[2]);
            return h < 0 || h >= 4 ? MultiIndex{} : MultiIndex{at[0], at[1] / 6, h, w};
        },
        false);
    const auto summed = [=](const Columns& in, DType) {
        Values out(2 * 2 * 4 * 6, 0);
        for_each_index({2, 12, 6}, [&](const Dims& at) {
            const auto [h, w] = in_image(at[1], at[2]);
            if (h >= 0 && h < 4)
                out[flat_index({2, 2, 4, 6}, {at[0], at[1] / 6, h, w})] +=
                    element(in[0], {2, 12, 6}, {at[0], at[1], at[2]});
        });
        return out;
    };
    all.push_back({.name = "fold",
                   .inputs = {{{2, 12, 6}}},
                   .call =
                       [=](const Tensors& in) {
                           return fold(in[0], {4, 6}, windows);
                       },
                   .reference = summed,
                   .terms = 4});
    add(
        "pad", {2, 4, 3}, {2, 6, 7},
        [](const Tensor& x) {
            return pad(x, {3, 1, 2, 0}, PadMode::replicate);
        },
        [](const Dims& at) {
            return MultiIndex{at[0], std::max<std::int64_t>(at[1] - 2, 0), std::clamp<std::int64_t>(at[2] - 3, 0, 2)};
        });
    add(
        "pad", {2, 4, 3}, {2, 7, 5},
        [](const Tensor& x) {
            return pad(x, {2, 0, 0, 3}, PadMode::reflect);
        },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] < 4 ? at[1] : 6 - at[1], std::abs(at[2] - 2)};
        });
    add(
        "pad", {2, 4, 3}, {2, 4, 6},
        [](const Tensor& x) {
            return pad(x, {2, 1, -1, 1}, PadMode::circular);
        },
        [](const Dims& at) {
            return MultiIndex{at[0], at[1] < 3 ? at[1] + 1 : 1, (at[2] + 1) % 3};
        });
    add(
        "pad", {2, 4, 3}, {2, 5, 2},
        [](const Tensor& x) {
            return pad(x, {-1, 0, 2, -1});
        },
        [](const Dims& at) {
            return at[1] < 2 ? MultiIndex{} : MultiIndex{at[0], at[1] - 2, at[2] + 1};
        });
}

}  // namespace declivity::test::catalogue
