// Resizing of images, one axis after the other.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/resize.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "resize_taps.hpp"

namespace declivity {
namespace {

using detail::AxisMap;
using Filter = AxisMap::Filter;

struct ResizedAxis {
    int axis;
    AxisMap map;
};

Tensor resize_along(const Tensor& x, const ResizedAxis& resized, DType real, bool bytes = false) {
    std::int64_t outer = 1, inner = 1;
    Shape shape = x.shape();
    for (int i = 0; i < resized.axis; ++i) outer *= shape[i];
    for (int i = resized.axis + 1; i < x.rank(); ++i) inner *= shape[i];
    shape[resized.axis] = resized.map.out;
    if (shape.numel() == 0) return reshape(slice(x, resized.axis, 0, 0), shape);  // empty, but connected to the graph
    const detail::Taps taps(resized.map, real, x.device());
    const Tensor lines = reshape(x, {outer, resized.map.in, inner});
    return reshape(bytes ? detail::resample_lines_u8(lines, taps) : detail::resample_lines(lines, taps), shape);
}

/// Sets elements outside of x, along any of the axes, to `value`.
Tensor fill_outside(const Tensor& y, const std::vector<ResizedAxis>& resized_axes, DType real, double value) {
    Tensor outside;
    for (const auto& [axis, map] : resized_axes) {
        Shape shape = Shape::filled(y.rank(), 1);
        shape[axis] = map.out;
        const Tensor source = reshape(map.source(real, y.device()), shape);
        const Tensor axis_outside = (source < 0) | (source > static_cast<double>(map.in - 1));
        outside = outside.defined() ? outside | axis_outside : axis_outside;
    }
    return outside.defined() ? where(outside, full({}, value, {y.dtype(), y.device()}), y) : y;
}

/// @param crop value of elements outside of x
Tensor resize_axes(const Tensor& x, std::vector<ResizedAxis> resized_axes, std::optional<double> crop = std::nullopt) {
    const bool floating = is_floating(x.dtype());
    const DType real = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const std::vector<ResizedAxis> all_axes = resized_axes;
    std::erase_if(resized_axes, [](const ResizedAxis& resized) { return resized.map.is_identity(); });
    // The axis with the strongest reduction first, to reduce the work for the others.
    std::ranges::stable_sort(resized_axes, {}, [](const ResizedAxis& resized) {
        return static_cast<double>(resized.map.out) / static_cast<double>(std::max<std::int64_t>(1, resized.map.in));
    });
    const bool selects = std::ranges::all_of(
        resized_axes, [](const ResizedAxis& resized) { return resized.map.filter == Filter::nearest; });
    const auto apply = [&](const Tensor& input) {
        Tensor y = input;
        for (const ResizedAxis& resized : resized_axes) y = resize_along(y, resized, real);
        return crop ? fill_outside(y, all_axes, real, *crop) : y;
    };
    if (floating) return detail::decomposed_in_f32([&](const auto& in) { return std::vector{apply(in[0])}; }, {x})[0];
    if (selects) return apply(x);
    // u8 is rounded after each axis, the last axis first, like PyTorch.
    const DType compute = x.device().info().fp64 ? DType::f64 : DType::f32;
    Tensor y = x;
    std::ranges::sort(resized_axes, std::greater<>(), &ResizedAxis::axis);
    for (const ResizedAxis& resized : resized_axes) y = resize_along(y, resized, compute, true);
    return crop ? fill_outside(y, all_axes, compute, std::clamp(std::round(*crop), 0.0, 255.0)) : y;
}

/// Checks types, and that x has elements if the result has.
void check(std::string_view name, const Tensor& x, const Shape& out, bool selects) {
    if (!is_floating(x.dtype()) && !selects && x.dtype() != DType::u8)
        throw TypeError(
            fmt::format("{}: expected x of f32, f64, f16, bf16 or u8 for this mode, got {}", name, name_of(x.dtype())));
    if (x.dtype() == DType::boolean) throw TypeError(fmt::format("{}: expected x of a numeric type, got bool", name));
    for (int axis = 0; axis < out.rank(); ++axis)
        if (out[axis] < 0 || (out[axis] > 0 && x.shape()[axis] < 1))
            throw ShapeError(
                fmt::format("{}: expected sizes of at least 0, and a non-empty x for a non-empty result, got x "
                            "{} and the result {}",
                            name, x.shape().str(), out.str()));
    constexpr std::int64_t kMax = 1 << 24;  // indices are computed in f32
    for (int axis = 0; axis < out.rank(); ++axis)
        if (out[axis] != x.shape()[axis] && std::max(out[axis], x.shape()[axis]) > kMax)
            throw ShapeError(fmt::format("{}: expected sizes of at most 2^24, got x {} and the result {}", name,
                                         x.shape().str(), out.str()));
}

double quotient(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// ---- PyTorch

struct Mode {
    std::string_view name;
    Filter filter;
    double shift;  // filter of the nearest modes
    int rank;      // number of spatial axes required; 0: any
    bool corners;  // supports align_corners
    bool smooths;  // supports antialias
};
constexpr std::array<Mode, 7> kModes{{{"nearest", Filter::nearest, 0, 0, false, false},
                                      {"nearest-exact", Filter::nearest, 0.5, 0, false, false},
                                      {"area", Filter::area, 0, 0, false, false},
                                      {"linear", Filter::linear, 0, 3, true, false},
                                      {"bilinear", Filter::linear, 0, 4, true, true},
                                      {"trilinear", Filter::linear, 0, 5, true, false},
                                      {"bicubic", Filter::cubic, 0, 4, true, true}}};

Mode mode_of(const InterpolateOptions& options, const Shape& x) {
    const auto* mode = std::ranges::find(kModes, options.mode, &Mode::name);
    if (mode == kModes.end())
        throw ValueError(
            fmt::format("interpolate: expected a mode of nearest, nearest-exact, area, linear, bilinear, "
                        "trilinear or bicubic, got {}",
                        options.mode));
    if (x.rank() < 3 || x.rank() > 5 || (mode->rank != 0 && mode->rank != x.rank()))
        throw ShapeError(fmt::format("interpolate: expected x of {} for mode {}, got {}",
                                     mode->rank == 0   ? "3 to 5 axes (N, C, ...)"
                                     : mode->rank == 3 ? "3 axes (N, C, L)"
                                     : mode->rank == 4 ? "4 axes (N, C, H, W)"
                                                       : "5 axes (N, C, D, H, W)",
                                     options.mode, x.str()));
    if (options.align_corners && !mode->corners)
        throw ValueError(fmt::format("interpolate: expected no align_corners for mode {}", options.mode));
    if (options.antialias && !mode->smooths)
        throw ValueError(
            fmt::format("interpolate: expected mode bilinear or bicubic for antialias, got {}", options.mode));
    return *mode;
}

AxisMap map_of(const Mode& mode, const InterpolateOptions& options, std::int64_t in, std::int64_t out, double factor) {
    AxisMap map{.in = in, .out = out, .filter = mode.filter};
    const bool corners = options.align_corners;
    map.scale = factor > 0 ? 1 / factor : quotient(in, std::max<std::int64_t>(1, out));
    if (corners) map.scale = out > 1 ? quotient(in - 1, out - 1) : 0;
    if (mode.filter == Filter::nearest) map.shift = mode.shift;
    else if (!corners || options.antialias) map.shift = 0.5, map.start = -0.5;
    if (options.antialias) map.a = -0.5, map.stretch = std::max(1.0, map.scale), map.exclude = true;
    return map;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
    const FunctionCall call("interpolate", {{"x", x}},
                            {{"size", options.size},
                             {"scale_factor", options.scale_factor.each()},
                             {"mode", options.mode},
                             {"align_corners", options.align_corners},
                             {"recompute_scale_factor", options.recompute_scale_factor},
                             {"antialias", options.antialias}});
    call.require_defined({"x"});
    const Mode mode = mode_of(options, x.shape());
    const int axes = x.rank() - 2;
    const bool sizes = !options.size.empty();
    const auto count = sizes ? static_cast<std::size_t>(options.size.rank()) : options.scale_factor.size();
    if (sizes != options.scale_factor.empty() || (count != 1 && count != static_cast<std::size_t>(axes)))
        throw ValueError(
            fmt::format("interpolate: expected either 1 or {} sizes, or as many scale factors, got {} sizes "
                        "and {} scale factors",
                        axes, options.size.rank(), options.scale_factor.size()));
    if (sizes && options.recompute_scale_factor)
        throw ValueError("interpolate: recompute_scale_factor expected scale factors, got sizes");
    Shape shape = x.shape();
    std::vector<ResizedAxis> resized_axes;
    for (int i = 0; i < axes; ++i) {
        const int axis = i + 2;
        const double factor = sizes ? 0 : options.scale_factor[count == 1 ? 0 : static_cast<std::size_t>(i)];
        if (!sizes && !(factor > 0 && factor * static_cast<double>(shape[axis]) < 0x1p40))
            throw ValueError(fmt::format("interpolate: expected scale factors above 0, got {}", factor));
        const std::int64_t in = shape[axis];
        shape[axis] = sizes ? options.size[count == 1 ? 0 : i]
                            : static_cast<std::int64_t>(std::floor(static_cast<double>(in) * factor));
        const bool by_factor = !sizes && !options.recompute_scale_factor;
        resized_axes.push_back({axis, map_of(mode, options, in, shape[axis], by_factor ? factor : 0)});
        if (shape[axis] < 1 || in < 1)
            throw ShapeError(
                fmt::format("interpolate: expected sizes of at least 1 after (N, C), got x {} and size {} "
                            "of axis {}",
                            x.shape().str(), shape[axis], axis));
    }
    check("interpolate", x, shape, mode.filter == Filter::nearest);
    return call.result(resize_axes(x, std::move(resized_axes)));
}

// ---- ONNX

std::string_view name_of(ResizeMode mode) {
    constexpr std::string_view kNames[] = {"nearest", "linear", "cubic"};
    return kNames[static_cast<int>(mode)];
}

std::string_view name_of(ResizeCoordinates coordinates) {
    constexpr std::string_view kNames[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                           "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    return kNames[static_cast<int>(coordinates)];
}

std::string_view name_of(ResizeNearest nearest) {
    constexpr std::string_view kNames[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    return kNames[static_cast<int>(nearest)];
}

namespace {

/// @param first,last of the region, where 1 is the last pixel
AxisMap map_of(const ResizeOptions& options, std::int64_t in, std::int64_t out, double factor, double first,
               double last) {
    AxisMap map{.in = in, .out = out};
    map.filter = options.mode == ResizeMode::nearest  ? Filter::nearest
                 : options.mode == ResizeMode::linear ? Filter::linear
                                                      : Filter::cubic;
    map.nearest = options.nearest_mode;
    map.a = options.cubic_coeff_a;
    map.exclude = options.exclude_outside;
    const double scaled_size = factor * static_cast<double>(in), out_size = static_cast<double>(out);
    map.scale = 1 / factor;
    const auto half = [&] { map.shift = 0.5, map.start = -0.5; };
    switch (options.coordinates) {
        case ResizeCoordinates::half_pixel:
            half();
            break;
        case ResizeCoordinates::half_pixel_symmetric:
            half();
            map.start += static_cast<double>(in) / 2 * (1 - out_size / scaled_size);
            break;
        case ResizeCoordinates::pytorch_half_pixel:
            if (out > 1) half();
            else map.scale = 0;
            break;
        case ResizeCoordinates::align_corners:
            map.scale = out > 1 ? static_cast<double>(in - 1) / (scaled_size - 1) : 0;
            break;
        case ResizeCoordinates::asymmetric:
            break;
        case ResizeCoordinates::tf_half_pixel_for_nn:
            map.shift = 0.5;
            break;
        case ResizeCoordinates::tf_crop_and_resize: {
            const auto end = static_cast<double>(in - 1);
            map.scale = out > 1 ? (last - first) * end / (out_size - 1) : 0;
            map.start = out > 1 ? first * end : 0.5 * (first + last) * end;
            break;
        }
    }
    if (options.antialias && options.mode != ResizeMode::nearest) map.stretch = std::max(1.0, 1 / factor);
    return map;
}

/// The axes that the options apply to.
std::vector<int> axes_of(const ResizeOptions& options, const Shape& x) {
    std::vector<int> axes;
    if (options.axes.empty())
        for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
    for (const std::int64_t axis : options.axes) axes.push_back(normalize_axis("resize", axis, x.rank()));
    for (const int axis : axes)
        if (std::ranges::count(axes, axis) > 1)
            throw ValueError(fmt::format("resize: expected each axis once, got {}", options.axes.str()));
    return axes;
}

}  // namespace

Tensor resize(const Tensor& x, const ResizeOptions& options) {
    const bool crops = options.coordinates == ResizeCoordinates::tf_crop_and_resize;
    const FunctionCall call("resize", {{"x", x}},
                            {{"sizes", options.sizes},
                             {"scales", options.scales},
                             {"axes", options.axes},
                             {"mode", options.mode},
                             {"coordinates", options.coordinates},
                             {"nearest_mode", options.nearest_mode},
                             {"cubic_coeff_a", options.cubic_coeff_a},
                             {"exclude_outside", options.exclude_outside},
                             {"antialias", options.antialias},
                             {"roi", options.roi},
                             {"extrapolation_value", options.extrapolation_value}});
    call.require_defined({"x"});
    const std::vector<int> axes = axes_of(options, x.shape());
    const bool sizes = !options.sizes.empty();
    const auto count = sizes ? static_cast<std::size_t>(options.sizes.rank()) : options.scales.size();
    if (sizes && !options.scales.empty()) throw ValueError("resize: expected sizes or scales, got both");
    if (count != axes.size() || (crops && options.roi.size() != 2 * axes.size()))
        throw ValueError(
            fmt::format("resize: expected {} sizes or scales{}, got {} sizes, {} scales and {} numbers as roi",
                        axes.size(), crops ? fmt::format(", and {} numbers as roi", 2 * axes.size()) : "",
                        options.sizes.rank(), options.scales.size(), options.roi.size()));
    Shape shape = x.shape();
    std::vector<ResizedAxis> resized_axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t in = shape[axes[i]];
        double factor = sizes ? 0 : options.scales[i];
        if (!sizes && !(factor > 0 && factor * static_cast<double>(in) < 0x1p40))
            throw ValueError(fmt::format("resize: expected scales above 0, got {}", factor));
        const std::int64_t out = sizes ? options.sizes[static_cast<int>(i)]
                                       : static_cast<std::int64_t>(std::floor(static_cast<double>(in) * factor));
        shape[axes[i]] = out;
        if (out < 1 || in < 1) continue;  // no elements, or rejected
        if (sizes) factor = quotient(out, in);
        resized_axes.push_back({axes[i], map_of(options, in, out, factor, crops ? options.roi[i] : 0,
                                                crops ? options.roi[axes.size() + i] : 1)});
    }
    check("resize", x, shape, options.mode == ResizeMode::nearest);
    if (shape.numel() == 0) {
        // An empty result, connected to the graph.
        Tensor flat = reshape(x, {x.numel()});
        return call.result(reshape(slice(flat, 0, 0, 0), shape));
    }
    return call.result(
        resize_axes(x, std::move(resized_axes), crops ? std::optional(options.extrapolation_value) : std::nullopt));
}

}  // namespace declivity
