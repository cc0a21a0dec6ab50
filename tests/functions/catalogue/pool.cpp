// Pooling over any number of spatial axes as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
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

/// `combine` of the elements of each window inside of x, and how many are in x or its padding.
Values pool_windows(const Values& x, const Shape& from, const Shape& out, const Windows& windows,
                    const std::function<double(const Values& inside, double padded_count)>& combine) {
    return table(out, [&](const Dims& at) {
        Values inside;
        double padded_count = 0;
        for_each_index(windows.kernel, [&](const Dims& tap) {
            const auto [index, in_x] = index_in_window(windows, from, at, tap, at[1]);
            if (in_x) inside.push_back(element(x, from, index));
            bool in_padded = true;
            for (int axis = 0; axis < windows.kernel.rank(); ++axis)
                in_padded =
                    in_padded && index[static_cast<std::size_t>(2 + axis)] < from[2 + axis] + windows.padding[axis];
            padded_count += in_padded ? 1 : 0;
        });
        return combine(inside, padded_count);
    });
}

double sum_of(const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double largest_of(const Values& inside, double) { return *std::ranges::max_element(inside); }
double mean_without_padding(const Values& inside, double) {
    return sum_of(inside) / static_cast<double>(inside.size());
}
double mean_with_padding(const Values& inside, double padded_count) { return sum_of(inside) / padded_count; }

/// Windows of elements from floor(i L / n) to ceil((i + 1) L / n).
Values adaptive(const Values& x, const Shape& from, const Shape& out,
                const std::function<double(const Values&, double)>& combine) {
    return table(out, [&](const Dims& at) {
        Values inside;
        for_each_index(from, [&](const Dims& index) {
            bool in_window = index[0] == at[0] && index[1] == at[1];
            for (int axis = 2; axis < from.rank(); ++axis) {
                const std::int64_t n = out[axis], length = from[axis];
                in_window = in_window && index[axis] >= at[axis] * length / n &&
                            index[axis] < ((at[axis] + 1) * length + n - 1) / n;
            }
            if (in_window) inside.push_back(element(x, from, MultiIndex(index.begin(), index.end())));
        });
        return combine(inside, 0);
    });
}

void add_pool(std::vector<Case>& all, const std::string& name, const Shape& from, const Shape& out,
              const Windows& windows, const std::function<double(const Values&, double)>& combine,
              std::function<Tensor(const Tensor&)> call, bool sampled, double low = -2) {
    all.push_back(
        {.name = name,
         .inputs = {{from, low}},
         .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
         .reference = [=](const Columns& in, DType) { return pool_windows(in[0], from, out, windows, combine); },
         .terms = 20,
         .sampled = sampled});
}

/// Distinct indices for the elements of each plane of x with n axes: 0, 3, 6, ... modulo `size`, no multiple of 3.
Tensor some_places(const Tensor& x, int n, std::int64_t size) {
    if (!x.defined()) return zeros({1}, {DType::i64});
    const TensorOptions window_size{DType::i64, x.device()};
    if (x.rank() < n) return zeros(x.shape(), window_size);
    Shape plane;
    for (int axis = x.rank() - n; axis < x.rank(); ++axis) plane.push_back(x.shape()[axis]);
    return expand(reshape(remainder(arange(0, plane.numel(), 1, window_size) * 3, size), plane), x.shape());
}

}  // namespace

void add_pools(std::vector<Case>& all) {
    const Windows line{{3}, {2}, {1}, {1}}, cube{{2, 3, 2}, {1, 2, 2}, {1, 1, 0}, {1, 1, 1}};
    const Pool1dParameters pool1d_options{.kernel_size = 3, .stride = 2, .padding = 1};
    const Pool3dParameters pool3d_options{.kernel_size = {2, 3, 2}, .stride = {1, 2, 2}, .padding = {1, 1, 0}};
    const Shape lines{2, 3, 9}, cubes{1, 2, 3, 5, 4}, few_lines{2, 3, 5}, few_cubes{1, 2, 4, 3, 2};
    add_pool(
        all, "max_pool1d", lines, few_lines, line, largest_of, [=](auto& x) { return max_pool1d(x, pool1d_options); },
        false);
    add_pool(
        all, "max_pool1d_with_indices", {2, 2, 8}, {2, 2, 4}, {{3}, {2}, {1}, {2}}, largest_of,
        [](auto& x) {
            return max_pool1d_with_indices(
                       x, {.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true})
                .values;
        },
        true);
    // Rows of 7 in ceil mode: (7 - 3 + 1) / 2 + 1 = 3, 8: 4, whose last window reaches over the end.
    add_pool(
        all, "max_pool2d", {1, 2, 8, 5}, {1, 2, 4, 3}, {{3, 4}, {2, 2}, {0, 1}, {1, 1}}, largest_of,
        [](auto& x) {
            return max_pool2d(x, {.kernel_size = {3, 4}, .stride = 2, .padding = {0, 1}, .ceil_mode = true});
        },
        true);
    add_pool(
        all, "max_pool2d_with_indices", {1, 2, 8, 5}, {1, 2, 4, 2}, {{3, 3}, {2, 2}, {0, 0}, {1, 1}}, largest_of,
        [](auto& x) { return max_pool2d_with_indices(x, {.kernel_size = 3, .stride = 2, .ceil_mode = true}).values; },
        true);
    add_pool(
        all, "max_pool3d", cubes, few_cubes, cube, largest_of, [=](auto& x) { return max_pool3d(x, pool3d_options); },
        false);
    add_pool(
        all, "max_pool3d_with_indices", {1, 2, 4, 3, 5}, {1, 2, 3, 2, 3}, {{2, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}},
        largest_of,
        [](auto& x) {
            return max_pool3d_with_indices(x, {.kernel_size = 2, .stride = {1, 2, 2}, .ceil_mode = true}).values;
        },
        true);
    add_pool(
        all, "max_pool3d", {1, 1, 4, 4, 5}, {1, 1, 2, 3, 1}, {{2, 2, 3}, {2, 1, 1}, {0, 0, 0}, {1, 1, 2}}, largest_of,
        [](auto& x) {
            return max_pool3d(x, {.kernel_size = {2, 2, 3}, .stride = {2, 1, 1}, .dilation = {1, 1, 2}});
        },
        true);

    add_pool(
        all, "avg_pool1d", lines, few_lines, line, mean_with_padding,
        [=](auto& x) { return avg_pool1d(x, pool1d_options); }, false);
    add_pool(
        all, "avg_pool1d", {2, 2, 8}, {2, 2, 4}, {{4}, {2}, {1}, {1}}, mean_without_padding,
        [](auto& x) {
            return avg_pool1d(
                x, {.kernel_size = 4, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
        },
        true);
    add_pool(
        all, "avg_pool2d", {1, 2, 8, 5}, {1, 2, 4, 3}, {{4, 3}, {2, 2}, {1, 1}, {1, 1}}, mean_with_padding,
        [](auto& x) {
            return avg_pool2d(x, {.kernel_size = {4, 3}, .stride = 2, .padding = 1, .ceil_mode = true});
        },
        true);
    add_pool(
        all, "avg_pool2d", {1, 2, 6, 5}, {1, 2, 3, 2}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}},
        [](const Values& inside, double) { return sum_of(inside) / 3; },
        [](auto& x) { return avg_pool2d(x, {.divisor_override = 3}); }, true);
    add_pool(
        all, "avg_pool3d", cubes, few_cubes, cube, mean_with_padding,
        [=](auto& x) { return avg_pool3d(x, pool3d_options); }, false);
    add_pool(
        all, "avg_pool3d", {1, 1, 4, 5, 5}, {1, 1, 3, 3, 3}, {{3, 2, 2}, {2, 2, 2}, {1, 0, 1}, {1, 1, 1}},
        mean_without_padding,
        [](auto& x) {
            return avg_pool3d(x, {.kernel_size = {3, 2, 2},
                                  .stride = 2,
                                  .padding = {1, 0, 1},
                                  .ceil_mode = true,
                                  .count_include_pad = false});
        },
        true);

    const auto p_norm = [](double p, double window_size) {
        return [=](const Values& inside, double) {
            double sum = 0;
            for (const double value : inside) sum += std::pow(value, p);
            return std::pow(sum / static_cast<double>(inside.size()) * window_size, 1 / p);
        };
    };
    add_pool(
        all, "lp_pool1d", {2, 2, 8}, {2, 2, 4}, {{3}, {2}, {0}, {1}}, p_norm(3, 3),
        [](auto& x) { return lp_pool1d(x, 3, {.kernel_size = 3, .stride = 2, .ceil_mode = true}); }, false, 0.25);
    add_pool(
        all, "lp_pool2d", {1, 2, 5, 4}, {1, 2, 2, 3}, {{2, 2}, {2, 1}, {0, 0}, {1, 1}}, p_norm(2, 4),
        [](auto& x) {
            return lp_pool2d(x, 2, {.stride = {2, 1}});
        },
        false);
    add_pool(
        all, "lp_pool3d", {1, 2, 4, 2, 3}, {1, 2, 2, 1, 2}, {{2, 2, 2}, {2, 1, 1}, {0, 0, 0}, {1, 1, 1}},
        p_norm(2.5, 8),
        [](auto& x) {
            return lp_pool3d(x, 2.5, {.stride = {2, 1, 1}});
        },
        true, 0.25);
}

void add_adaptive_pools(std::vector<Case>& all) {
    const auto add = [&](const std::string& name, const Shape& from, const Shape& out,
                         const std::function<double(const Values&, double)>& combine,
                         std::function<Tensor(const Tensor&)> call, bool sampled) {
        all.push_back({.name = name,
                       .inputs = {{from}},
                       .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
                       .reference = [=](const Columns& in, DType) { return adaptive(in[0], from, out, combine); },
                       .terms = 20,
                       .sampled = sampled});
    };
    const Shape line{2, 3, 7}, image{1, 3, 7, 5}, even{2, 2, 6, 4}, cube{1, 2, 3, 4, 5};
    add(
        "adaptive_avg_pool1d", line, {2, 3, 4}, mean_without_padding, [](auto& x) { return adaptive_avg_pool1d(x, 4); },
        false);
    add(
        "adaptive_avg_pool2d", image, {1, 3, 3, 4}, mean_without_padding,
        [](auto& x) {
            return adaptive_avg_pool2d(x, {3, 4});
        },
        false);
    add(
        "adaptive_avg_pool2d", even, {2, 2, 3, 4}, mean_without_padding,
        [](auto& x) {
            return adaptive_avg_pool2d(x, {3, -1});
        },
        true);
    add(
        "adaptive_avg_pool3d", cube, {1, 2, 2, 2, 3}, mean_without_padding,
        [](auto& x) {
            return adaptive_avg_pool3d(x, {2, 2, 3});
        },
        true);
    add(
        "adaptive_max_pool1d", line, {2, 3, 4}, largest_of, [](auto& x) { return adaptive_max_pool1d(x, 4); }, true);
    add(
        "adaptive_max_pool1d_with_indices", line, {2, 3, 3}, largest_of,
        [](auto& x) { return adaptive_max_pool1d_with_indices(x, 3).values; }, true);
    add(
        "adaptive_max_pool2d", image, {1, 3, 3, 4}, largest_of,
        [](auto& x) {
            return adaptive_max_pool2d(x, {3, 4});
        },
        false);
    add(
        "adaptive_max_pool2d_with_indices", even, {2, 2, 3, 2}, largest_of,
        [](auto& x) {
            return adaptive_max_pool2d_with_indices(x, {3, 2}).values;
        },
        true);
    add(
        "adaptive_max_pool3d", cube, {1, 2, 2, 2, 3}, largest_of,
        [](auto& x) {
            return adaptive_max_pool3d(x, {2, 2, 3});
        },
        true);
    add(
        "adaptive_max_pool3d_with_indices", cube, {1, 2, 3, 3, 2}, largest_of,
        [](auto& x) {
            return adaptive_max_pool3d_with_indices(x, {3, 3, 2}).values;
        },
        true);
}

void add_unpools(std::vector<Case>& all) {
    const auto add = [&](const std::string& name, const Shape& from, std::int64_t size, const Shape& out,
                         std::function<Tensor(const Tensor&)> call) {
        all.push_back({.name = name,
                       .inputs = {{from}},
                       .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
                       .reference =
                           [=](const Columns& in, DType) {
                               Values values(static_cast<std::size_t>(out.numel()), 0);
                               const auto plane_size = static_cast<std::size_t>(from.numel() / from[0] / from[1]),
                                          plane = static_cast<std::size_t>(size);
                               for (std::size_t i = 0; i < in[0].size(); ++i)
                                   values[i / plane_size * plane + i % plane_size * 3 % plane] = in[0][i];
                               return values;
                           },
                       .sampled = true});
    };
    add("max_unpool1d", {2, 3, 4}, 8, {2, 3, 8}, [](auto& x) { return max_unpool1d(x, some_places(x, 1, 8)); });
    add("max_unpool2d", {2, 2, 3, 2}, 20, {2, 2, 5, 4}, [](auto& x) {
        return max_unpool2d(x, some_places(x, 2, 20), {}, {5, 4});
    });
    add("max_unpool3d", {1, 2, 2, 1, 2}, 4 * 2 * 4, {1, 2, 4, 2, 4},
        [](auto& x) { return max_unpool3d(x, some_places(x, 3, 32)); });

    const auto begin = [](double u, std::int64_t i, std::int64_t length, std::int64_t kernel, std::int64_t count) {
        if (i == count - 1) return length - kernel;
        const double a = static_cast<double>(length - kernel) / static_cast<double>(count - 1);
        return static_cast<std::int64_t>((static_cast<double>(i) + u) * a) - static_cast<std::int64_t>(u * a);
    };
    const auto fractional = [=](const Shape& from, const Shape& out, const Dims& kernel, const Dims& order) {
        return [=](const Columns& in, DType) {
            return table(out, [&](const Dims& at) {
                Values inside;
                for_each_index(kernel, [&](const Dims& tap) {
                    MultiIndex index{at[0], at[1]};
                    for (int axis = 0; axis < kernel.rank(); ++axis) {
                        const double u =
                            in[1][static_cast<std::size_t>((at[0] * from[1] + at[1]) * kernel.rank() + order[axis])];
                        index.push_back(begin(u, at[2 + axis], from[2 + axis], kernel[axis], out[2 + axis]) +
                                        tap[axis]);
                    }
                    inside.push_back(element(in[0], from, index));
                });
                return largest_of(inside, 0);
            });
        };
    };
    for (const bool with_indices : {false, true}) {
        all.push_back(
            {.name = with_indices ? "fractional_max_pool2d_with_indices" : "fractional_max_pool2d",
             .inputs = {{{2, 2, 7, 6}}, {{2, 2, 2}, 0, 1, Kind::constant}},
             .call =
                 [=](const Tensors& in) {
                     const FractionalPool2dParameters options{.kernel_size = {2, 3}, .output_size = Size2(4, 3)};
                     return with_indices ? fractional_max_pool2d_with_indices(in[0], options, in[1]).values
                                         : fractional_max_pool2d(in[0], options, in[1]);
                 },
             .reference = fractional({2, 2, 7, 6}, {2, 2, 4, 3}, {2, 3}, {1, 0}),
             .first_optional = 1,
             .sampled = true});
        all.push_back(
            {.name = with_indices ? "fractional_max_pool3d_with_indices" : "fractional_max_pool3d",
             .inputs = {{{1, 2, 5, 4, 6}}, {{1, 2, 3}, 0, 1, Kind::constant}},
             .call =
                 [=](const Tensors& in) {
                     const FractionalPool3dParameters options{.kernel_size = 2, .output_ratio = {{0.7, 0.5, 0.67}}};
                     return with_indices ? fractional_max_pool3d_with_indices(in[0], options, in[1]).values
                                         : fractional_max_pool3d(in[0], options, in[1]);
                 },
             .reference = fractional({1, 2, 5, 4, 6}, {1, 2, 3, 2, 4}, {2, 2, 2}, {0, 1, 2}),
             .first_optional = 1,
             .sampled = true});
    }
}

}  // namespace declivity::test::catalogue
