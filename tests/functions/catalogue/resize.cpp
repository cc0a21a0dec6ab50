// Resizing, grid sampling and region sampling as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/resize.hpp>
#include <declivity/functions/vision.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/references.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

/// Keys' cubic filter.
double keys(double d, double a) {
    d = std::abs(d);
    if (d < 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

WeightedIndices nearest_index(std::int64_t in, double at) {
    return {{std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, in - 1), 1.0}};
}

/// Applies the mixes of each position along all axes.
Values weighted_gather(const Values& x, const Shape& from, const std::vector<std::vector<WeightedIndices>>& axes) {
    Shape to;
    for (const auto& axis : axes) to.push_back(static_cast<std::int64_t>(axis.size()));
    return table(to, [&](const Dims& at) {
        const std::function<double(int, std::int64_t)> value = [&](int axis, std::int64_t position) {
            if (axis == from.rank()) return x[static_cast<std::size_t>(position)];
            double sum = 0;
            for (const auto& [index, weight] : axes[static_cast<std::size_t>(axis)][static_cast<std::size_t>(at[axis])])
                sum += weight * value(axis + 1, position * from[axis] + index);
            return sum;
        };
        return value(0, 0);
    });
}

/// The identity.
std::vector<WeightedIndices> unchanged(std::int64_t size) {
    std::vector<WeightedIndices> out;
    for (std::int64_t i = 0; i < size; ++i) out.push_back({{i, 1.0}});
    return out;
}

/// One axis of interpolate().
/// @param factor 0: given by the sizes
std::vector<WeightedIndices> interpolated(std::int64_t in, std::int64_t out, double factor,
                                          const InterpolateOptions& options) {
    const auto n = static_cast<double>(in), m = static_cast<double>(out);
    const double scale = factor > 0 ? 1 / factor : n / m;
    std::vector<WeightedIndices> all;
    for (std::int64_t o = 0; o < out; ++o) {
        const auto i = static_cast<double>(o);
        double at = (i + 0.5) * scale - 0.5, step = scale;
        if (options.align_corners) step = out > 1 ? (n - 1) / (m - 1) : 0, at = i * step;
        if (options.align_corners && options.antialias) at = (i + 0.5) * step - 0.5;
        const double stretch = options.antialias ? std::max(1.0, step) : 1;
        if (options.mode == "nearest") all.push_back(nearest_index(in, std::floor(i * scale)));
        else if (options.mode == "nearest-exact") all.push_back(nearest_index(in, std::floor((i + 0.5) * scale)));
        else if (options.mode == "bicubic")
            all.push_back(filter_weights(
                in, at, [&](double d) { return keys(d, options.antialias ? -0.5 : -0.75); }, stretch,
                options.antialias));
        else if (options.mode == "area") {
            const auto first = static_cast<std::int64_t>(std::floor(i * n / m)),
                       end = static_cast<std::int64_t>(std::ceil((i + 1) * n / m));
            WeightedIndices mix;
            for (std::int64_t j = first; j < end; ++j) mix.emplace_back(j, 1 / static_cast<double>(end - first));
            all.push_back(mix);
        } else all.push_back(filter_weights(in, at, triangle, stretch, options.antialias));
    }
    return all;
}

/// One axis of resize(), in the coordinates of the options.
std::vector<WeightedIndices> resize_axis_reference(std::int64_t in, std::int64_t out, double factor,
                                                   const ResizeOptions& options, double first = 0, double last = 1) {
    const auto n = static_cast<double>(in), m = static_cast<double>(out);
    std::vector<WeightedIndices> all;
    for (std::int64_t o = 0; o < out; ++o) {
        const auto i = static_cast<double>(o);
        double at = (i + 0.5) / factor - 0.5;
        switch (options.coordinates) {
            case ResizeCoordinates::half_pixel:
                break;
            case ResizeCoordinates::half_pixel_symmetric:
                at += n / 2 * (1 - m / (factor * n));
                break;
            case ResizeCoordinates::pytorch_half_pixel:
                if (out == 1) at = 0;
                break;
            case ResizeCoordinates::align_corners:
                at = out == 1 ? 0 : i * (n - 1) / (factor * n - 1);
                break;
            case ResizeCoordinates::asymmetric:
                at = i / factor;
                break;
            case ResizeCoordinates::tf_half_pixel_for_nn:
                at = (i + 0.5) / factor;
                break;
            case ResizeCoordinates::tf_crop_and_resize:
                at = out == 1 ? 0.5 * (first + last) * (n - 1) : (first + i * (last - first) / (m - 1)) * (n - 1);
                break;
        }
        if (options.coordinates == ResizeCoordinates::tf_crop_and_resize && (at < 0 || at > n - 1)) {
            all.emplace_back();  // nothing
            continue;
        }
        const double stretch = options.antialias ? std::max(1.0, 1 / factor) : 1;
        if (options.mode == ResizeMode::linear)
            all.push_back(filter_weights(in, at, triangle, stretch, options.exclude_outside));
        else if (options.mode == ResizeMode::cubic)
            all.push_back(filter_weights(
                in, at, [&](double d) { return keys(d, options.cubic_coeff_a); }, stretch, options.exclude_outside));
        else {
            const double low = std::floor(at), part = at - low;
            const bool up = options.nearest_mode == ResizeNearest::ceil                 ? part > 0
                            : options.nearest_mode == ResizeNearest::floor              ? false
                            : options.nearest_mode == ResizeNearest::round_prefer_floor ? part > 0.5
                                                                                        : part >= 0.5;
            all.push_back(nearest_index(in, std::max(0.0, low + (up ? 1 : 0))));
        }
    }
    return all;
}

Case resize_case(const Shape& from, const ResizeOptions& options) {
    return {.name = "resize",
            .inputs = {{from}},
            .call = [options](const Tensors& in) { return resize(in[0], options); },
            .reference = [from, options](const Columns& in, DType) { return resize_reference(in[0], from, options); },
            .terms = 16,
            .sampled = true};
}

/// The index of the pixel that padding places at `at`, in [0, size), or -1.
std::int64_t padded_index(double at, std::int64_t size, const GridSampleOptions& options) {
    const auto n = static_cast<double>(size);
    if (options.padding_mode == "border") at = std::clamp(at, 0.0, n - 1);
    if (options.padding_mode == "reflection") {
        const double low = options.align_corners ? 0 : -0.5, high = options.align_corners ? n - 1 : n - 0.5;
        while (high > low && (at < low || at > high)) at = at < low ? 2 * low - at : 2 * high - at;
        at = std::clamp(at, 0.0, n - 1);
    }
    return at < 0 || at > n - 1 ? -1 : static_cast<std::int64_t>(at);
}
double padded(double at, std::int64_t size, const GridSampleOptions& options) {
    const auto n = static_cast<double>(size);
    if (options.padding_mode == "reflection") {
        const double low = options.align_corners ? 0 : -0.5, high = options.align_corners ? n - 1 : n - 0.5;
        while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
    }
    return options.padding_mode == "zeros" ? at : std::clamp(at, 0.0, n - 1);
}

/// One axis of grid_sample at g in [-1, 1].
WeightedIndices gridded(double g, std::int64_t size, const GridSampleOptions& options) {
    const auto n = static_cast<double>(size);
    const double raw = options.align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
    WeightedIndices mix;
    const auto add = [&](double at, double weight) {
        const std::int64_t position = padded_index(at, size, options);
        if (position >= 0) mix.emplace_back(position, weight);
    };
    if (options.mode == "bicubic")
        for (double j = std::floor(raw) - 1; j <= std::floor(raw) + 2; ++j) add(j, keys(j - raw, -0.75));
    else if (options.mode == "nearest") add(std::nearbyint(padded(raw, size, options)), 1);
    else {
        const double at = padded(raw, size, options), low = std::floor(at);
        add(low, 1 - (at - low)), add(low + 1, at - low);
    }
    return mix;
}

Case grid_case(const Shape& x, const Shape& grid, const GridSampleOptions& options) {
    return {.name = "grid_sample",
            .inputs = {{x}, {grid, -1.7, 1.7}},
            .call = [options](const Tensors& in) { return grid_sample(in[0], in[1], options); },
            .reference = [=](const Columns& in, DType) { return grid_sample_reference(in, x, grid, options); },
            .terms = 16,
            .gradient_tolerance = 1e-5,
            .sampled = true};
}

Case affine_case(const Shape& size, bool align_corners) {
    const std::int64_t axes = size.rank() - 2;
    Shape out{size[0]};
    for (int i = 2; i < size.rank(); ++i) out.push_back(size[i]);
    out.push_back(axes);
    return {.name = "affine_grid",
            .inputs = {{{size[0], axes, axes + 1}}},
            .call = [=](const Tensors& in) { return affine_grid(in[0], size, align_corners); },
            .reference =
                [=](const Columns& in, DType) {
                    return table(out, [&](const Dims& at) {
                        const std::int64_t row = (at[0] * axes + at[-1]) * (axes + 1);
                        double sum = in[0][static_cast<std::size_t>(row + axes)];
                        for (std::int64_t k = 0; k < axes; ++k) {
                            const auto axis = static_cast<int>(axes - k);  // of `at`, with x as the innermost
                            const auto n = static_cast<double>(out[axis]), i = static_cast<double>(at[axis]);
                            const double position =
                                align_corners ? (out[axis] == 1 ? 0 : 2 * i / (n - 1) - 1) : (2 * i + 1) / n - 1;
                            sum += in[0][static_cast<std::size_t>(row + k)] * position;
                        }
                        return sum;
                    });
                },
            .terms = 4,
            .sampled = true};
}

}  // namespace

Case interpolate_case(const Shape& from, const InterpolateOptions& options) {
    const auto reference = [from, options](const Columns& in, DType) {
        std::vector<std::vector<WeightedIndices>> axes{unchanged(from[0]), unchanged(from[1])};
        for (int axis = 2; axis < from.rank(); ++axis) {
            const int i = axis - 2;
            if (!options.size.empty()) {
                axes.push_back(interpolated(from[axis], options.size[options.size.rank() == 1 ? 0 : i], 0, options));
                continue;
            }
            const double factor =
                options.scale_factor[options.scale_factor.size() == 1 ? 0 : static_cast<std::size_t>(i)];
            const auto out = static_cast<std::int64_t>(std::floor(static_cast<double>(from[axis]) * factor));
            axes.push_back(interpolated(from[axis], out, options.recompute_scale_factor ? 0 : factor, options));
        }
        return weighted_gather(in[0], from, axes);
    };
    return {.name = "interpolate",
            .inputs = {{from}},
            .call = [options](const Tensors& in) { return interpolate(in[0], options); },
            .reference = reference,
            .terms = 16,
            .sampled = true};
}

Values resize_reference(const Values& x, const Shape& from, const ResizeOptions& options) {
    std::vector<std::vector<WeightedIndices>> axes;
    for (int axis = 0; axis < from.rank(); ++axis) {
        const auto i = static_cast<std::size_t>(axis), all = static_cast<std::size_t>(from.rank());
        const auto n = static_cast<double>(from[axis]);
        const double factor = options.sizes.empty() ? options.scales[i] : static_cast<double>(options.sizes[axis]) / n;
        const auto out =
            options.sizes.empty() ? static_cast<std::int64_t>(std::floor(n * factor)) : options.sizes[axis];
        axes.push_back(options.roi.empty() ? resize_axis_reference(from[axis], out, factor, options)
                                           : resize_axis_reference(from[axis], out, factor, options, options.roi[i],
                                                                   options.roi[all + i]));
    }
    return weighted_gather(x, from, axes);
}

Values grid_sample_reference(const Columns& in, const Shape& x, const Shape& grid, const GridSampleOptions& options) {
    const int axes = x.rank() - 2;
    Shape out{x[0], x[1]}, image;
    for (int i = 0; i < axes; ++i) out.push_back(grid[1 + i]), image.push_back(x[2 + i]);
    return table(out, [&](const Dims& at) {
        std::int64_t row = at[0];
        for (int i = 0; i < axes; ++i) row = row * grid[1 + i] + at[2 + i];
        std::vector<std::vector<WeightedIndices>> mixes;
        for (int i = 0; i < axes; ++i)
            mixes.push_back({gridded(in[1][static_cast<std::size_t>(row * axes + axes - 1 - i)], image[i], options)});
        const auto pixels = image.numel();
        const auto first = in[0].begin() + (at[0] * x[1] + at[1]) * pixels;
        return weighted_gather(Values(first, first + pixels), image, mixes)[0];
    });
}

std::vector<Case> resize_catalogue() {
    std::vector<Case> all;
    const Shape image{1, 2, 5, 4};
    all.push_back(interpolate_case(image, {.size = {7, 3}, .mode = "bilinear"}));
    all.back().sampled = false;
    for (const InterpolateOptions& options :
         {InterpolateOptions{.size = {7, 3}}, InterpolateOptions{.scale_factor = {1.7}, .mode = "nearest-exact"},
          InterpolateOptions{.size = {3, 6}, .mode = "area"},
          InterpolateOptions{.scale_factor = {0.6, 1.3}, .mode = "bilinear", .align_corners = true},
          InterpolateOptions{.scale_factor = {1.7, 0.6}, .mode = "bilinear", .recompute_scale_factor = true},
          InterpolateOptions{.size = {8, 3}, .mode = "bicubic"},
          InterpolateOptions{.size = {2, 9}, .mode = "bilinear", .antialias = true},
          InterpolateOptions{.size = {2, 2}, .mode = "bicubic", .align_corners = true, .antialias = true}})
        all.push_back(interpolate_case(image, options));
    all.push_back(interpolate_case({2, 3, 5}, {.scale_factor = {2.3}, .mode = "linear"}));
    all.push_back(interpolate_case({1, 2, 3, 2, 4}, {.size = {2, 3, 5}, .mode = "trilinear"}));
    const Shape plain{5, 6};
    using C = ResizeCoordinates;
    using M = ResizeMode;
    using N = ResizeNearest;
    all.push_back(resize_case(plain, {.scales = {1.7, 0.6}, .mode = M::cubic, .exclude_outside = true}));
    all.back().sampled = false;
    for (const ResizeOptions& options :
         {ResizeOptions{.sizes = {7, 4}, .mode = M::linear, .coordinates = C::align_corners},
          ResizeOptions{.scales = {2.3, 0.9}, .mode = M::linear, .coordinates = C::half_pixel_symmetric},
          ResizeOptions{.sizes = {3, 8}, .coordinates = C::asymmetric, .nearest_mode = N::ceil},
          ResizeOptions{.sizes = {10, 3}, .nearest_mode = N::round_prefer_ceil},
          ResizeOptions{.sizes = {1, 9}, .mode = M::linear, .coordinates = C::pytorch_half_pixel},
          ResizeOptions{.sizes = {3, 2}, .mode = M::cubic, .cubic_coeff_a = -0.5, .antialias = true},
          ResizeOptions{
              .sizes = {4, 5}, .mode = M::linear, .coordinates = C::tf_crop_and_resize, .roi = {0.8, -0.2, 0.1, 0.9}}})
        all.push_back(resize_case(plain, options));
    const Shape x{2, 2, 3, 4}, grid{2, 3, 2, 2};
    all.push_back(grid_case(x, grid, {}));
    all.back().sampled = false;
    for (const char* mode : {"bilinear", "nearest", "bicubic"})
        for (const char* padding : {"zeros", "border", "reflection"})
            for (const bool corners : {false, true})
                all.push_back(grid_case(x, grid, {.mode = mode, .padding_mode = padding, .align_corners = corners}));
    for (const char* padding : {"zeros", "reflection"})
        all.push_back(grid_case({1, 2, 3, 2, 4}, {1, 2, 1, 3, 3}, {.padding_mode = padding}));
    for (const bool corners : {false, true}) {
        all.push_back(affine_case({2, 3, 4, 5}, corners));
        all.push_back(affine_case({1, 3, 2, 1, 3}, corners));
    }
    all[all.size() - 4].sampled = false;
    return all;
}

}  // namespace declivity::test::catalogue
