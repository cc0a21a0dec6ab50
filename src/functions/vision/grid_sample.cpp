#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/resize.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "sampling.hpp"

namespace declivity {
namespace {

using detail::AxisSamples;

enum class Mode : std::uint8_t { bilinear, nearest, bicubic };
enum class Padding : std::uint8_t { zeros, border, reflection };

template <class Enum, std::size_t N>
Enum enum_of(const char* what, const std::array<const char*, N>& names, const std::string& name) {
    const auto* found = std::ranges::find(names, name);
    if (found == names.end())
        throw ValueError(
            fmt::format("grid_sample: expected {} {}, {} or {}, got {}", what, names[0], names[1], names[2], name));
    return static_cast<Enum>(found - names.begin());
}

/// Clamped to [0, last]; no gradient at and beyond the ends, like PyTorch.
Tensor at_border(const Tensor& coordinate, double last) {
    return where(coordinate <= 0, 0.0, where(coordinate >= last, last, coordinate));
}

/// Reflected at the ends: at the centres of the first and last pixel if corners are aligned, otherwise at their outer
/// edges.
Tensor reflect_coordinates(const Tensor& coordinate, double last, bool align_corners) {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? last : last + 1;
    if (span == 0) return coordinate * 0;
    const Tensor distance = where(coordinate < low, low - coordinate, coordinate - low);
    const Tensor periods = floor(distance.detach() * (1 / span)), rest = distance - periods * span;
    const Tensor odd = periods - 2 * floor(periods * 0.5);
    return where(odd == 0, rest + low, span + low - rest);
}

/// One axis of the image.
struct Axis {
    std::int64_t size;
    Padding padding;
    bool align_corners;

    [[nodiscard]] double last() const { return static_cast<double>(size - 1); }
    [[nodiscard]] Tensor apply_padding(const Tensor& coordinate) const {
        if (padding == Padding::border) return at_border(coordinate, last());
        if (padding == Padding::reflection)
            return at_border(reflect_coordinates(coordinate, last(), align_corners), last());
        return coordinate;
    }
    /// Valid samples: those in [0, size).
    [[nodiscard]] AxisSamples valid_samples(const Tensor& positions, Tensor weights) const {
        return {.positions = clamp(positions, 0, last()),
                .valid = (positions >= 0) & (positions <= last()),
                .weights = std::move(weights)};
    }
    /// @param g coordinates in [-1, 1] @return samples along one more axis
    [[nodiscard]] AxisSamples samples(const Tensor& g, Mode mode) const {
        const auto n = static_cast<double>(size);
        const Tensor raw = align_corners ? (g + 1) * ((n - 1) / 2) : ((g + 1) * n - 1) * 0.5;
        if (mode == Mode::bilinear) return detail::linear_samples(apply_padding(raw), size);
        if (mode == Mode::nearest) return valid_samples(unsqueeze(round(apply_padding(raw).detach()), -1), {});
        const Tensor low = floor(raw.detach()), t = raw - low;
        // Keys' cubic filter with a = -0.75.
        constexpr double a = -0.75;
        const auto near = [](const Tensor& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
        const auto far = [](const Tensor& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
        return valid_samples(apply_padding(stack({low - 1, low, low + 1, low + 2}, -1)),
                             stack({far(t + 1), near(t), near(1 - t), far(2 - t)}, -1));
    }
};

Tensor sampled(const Tensor& x, const Tensor& grid, Mode mode, Padding padding, bool align_corners) {
    const int axes = x.rank() - 2;
    const std::int64_t images = x.size(0), points = grid.numel() / std::max<std::int64_t>(1, images * axes);
    const Tensor coordinates = reshape(grid, {images, points, axes});
    std::vector<AxisSamples> samples;
    std::vector<std::int64_t> sizes;
    std::int64_t samples_per_point = 1;
    for (int i = 0; i < axes; ++i) {
        const std::int64_t size = x.size(2 + i);
        // The grid starts with the innermost axis. Samples of axis i are along axis 2 + i.
        AxisSamples axis_samples =
            Axis{size, padding, align_corners}.samples(select(coordinates, 2, axes - 1 - i), mode);
        const std::int64_t k = axis_samples.positions.size(-1);
        Shape shape{images, points};
        for (int j = 0; j < axes; ++j) shape.push_back(j == i ? k : 1);
        for (Tensor* part : {&axis_samples.positions, &axis_samples.valid, &axis_samples.weights})
            if (part->defined()) *part = reshape(*part, shape);
        samples.push_back(std::move(axis_samples));
        sizes.push_back(size);
        samples_per_point *= k;
    }
    Shape image_shape{images, 1};
    for (int i = 0; i < axes; ++i) image_shape.push_back(1);
    const detail::PixelSamples pixels(samples, sizes,
                                      reshape(arange(0, images, 1, {DType::i64, x.device()}), image_shape));
    const Shape flat{images * points, samples_per_point};
    const Tensor rows =
        detail::gather_weighted_sum("grid_sample", detail::pixel_rows(x), reshape(pixels.row_indices, flat),
                                    pixels.weights.defined() ? reshape(pixels.weights, flat) : Tensor());
    Shape shape{images, x.size(1)};
    for (int i = 0; i < axes; ++i) shape.push_back(grid.size(1 + i));
    Tensor y = reshape(transpose(reshape(rows, {images, points, x.size(1)}), 1, 2), shape);
    // Gradient of zeros for the grid if pixels are selected rather than interpolated.
    if (mode == Mode::nearest && any_requires_grad({grid}))
        y = y + reshape(sum(coordinates * 0, {2}), [&] {
                Shape pixel_shape = shape;
                pixel_shape[1] = 1;
                return pixel_shape;
            }());
    return y;
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
    const FunctionCall call(
        "grid_sample", {{"x", x}, {"grid", grid}},
        {{"mode", options.mode}, {"padding_mode", options.padding_mode}, {"align_corners", options.align_corners}});
    call.require_defined({"x", "grid"});
    const auto mode = enum_of<Mode>("a mode of", std::array{"bilinear", "nearest", "bicubic"}, options.mode);
    const auto padding =
        enum_of<Padding>("a padding mode of", std::array{"zeros", "border", "reflection"}, options.padding_mode);
    ops::require_real("grid_sample", "x", x.dtype());
    ops::require_alike("grid_sample", "x", x.dtype(), x.device(), "grid", grid.dtype(), grid.device());
    const int axes = x.rank() - 2;
    if ((axes != 2 && axes != 3) || grid.rank() != x.rank() || grid.size(0) != x.size(0) || grid.size(-1) != axes)
        throw ShapeError(
            fmt::format("grid_sample: expected x of shape (N, C, H, W) and grid of shape (N, P, Q, 2), or x of shape "
                        "(N, C, D, H, W) and "
                        "grid (N, O, P, Q, 3), got {} and {}",
                        x.shape().str(), grid.shape().str()));
    for (int i = 0; i < axes; ++i)
        if (x.size(2 + i) < 1)
            throw ShapeError(fmt::format("grid_sample: expected non-empty images, got {}", x.shape().str()));
    return call.result(detail::decomposed_in_f32(
        [&](const auto& in) { return std::vector{sampled(in[0], in[1], mode, padding, options.align_corners)}; },
        {x, grid})[0]);
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
    const FunctionCall call("affine_grid", {{"theta", theta}}, {{"size", size}, {"align_corners", align_corners}});
    call.require_defined({"theta"});
    ops::require_real("affine_grid", "theta", theta.dtype());
    const int axes = size.rank() - 2;
    if (axes != 2 && axes != 3)
        throw ShapeError(
            fmt::format("affine_grid: expected a size of shape (N, C, H, W) or (N, C, D, H, W), got {}", size.str()));
    for (const std::int64_t extent : size)
        if (extent < 1) throw ShapeError(fmt::format("affine_grid: expected sizes of at least 1, got {}", size.str()));
    ops::require_shape("affine_grid", "theta", theta.shape(), {size[0], axes, axes + 1});
    const auto make_grid = [&](const std::vector<Tensor>& in) {
        // (x, y, z, 1) of each output position, innermost axis first.
        Shape shape;
        for (int i = 0; i < axes; ++i) shape.push_back(size[2 + i]);
        std::vector<Tensor> parts;
        for (int i = axes - 1; i >= 0; --i) {
            const std::int64_t n = size[2 + i];
            const TensorOptions options{in[0].dtype(), in[0].device()};
            const Tensor k = arange(0, n, 1, options);
            const auto count = static_cast<double>(n);
            const Tensor line = n == 1          ? zeros({1}, options)
                                : align_corners ? k * (2 / (count - 1)) - 1
                                                : (2 * k + (1 - count)) * (1 / count);
            Shape axis_shape = Shape::filled(axes, 1);
            axis_shape[i] = n;
            parts.push_back(expand(reshape(line, axis_shape), shape));
        }
        parts.push_back(ones(shape, {in[0].dtype(), in[0].device()}));
        const Tensor base = reshape(stack(parts, -1), {1, shape.numel(), axes + 1});
        Shape out{size[0]};
        for (const std::int64_t n : shape) out.push_back(n);
        out.push_back(axes);
        return std::vector{reshape(matmul(base, transpose(in[0], 1, 2)), out)};
    };
    return call.result(detail::decomposed_in_f32(make_grid, {theta})[0]);
}

}  // namespace declivity
