#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/vision.hpp>
#include <declivity/ops/roi_pool.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "functions/support/flat_indices.hpp"
#include "functions/support/rows.hpp"
#include "regions.hpp"
#include "sampling.hpp"

namespace declivity {
namespace detail {

Regions::Regions(const char* function, const Tensor& x, const Tensor& box_input, const Tensor& image_indices,
                 Size2 output_size) {
    ops::require_rank(function, "x", x.shape(), 4, "N, C, H, W");
    ops::require_real(function, "x", x.dtype());
    ops::require_alike(function, "x", x.dtype(), x.device(), "boxes", box_input.dtype(), box_input.device());
    const std::int64_t width = image_indices.defined() ? 4 : 5;
    if (box_input.rank() != 2 || box_input.size(1) != width)
        throw ShapeError(fmt::format("{}: expected boxes of shape (K, {}){}, got {}", function, width,
                                     image_indices.defined() ? "" : ", or (K, 4) and the numbers of their images",
                                     box_input.shape().str()));
    if (output_size[0] < 1 || output_size[1] < 1)
        throw ValueError(fmt::format("{}: expected an output size of at least 1 x 1, got {} x {}", function,
                                     output_size[0], output_size[1]));
    if (x.size(2) < 1 || x.size(3) < 1)
        throw ShapeError(fmt::format("{}: expected non-empty images, got {}", function, x.shape().str()));
    const Tensor compute_boxes = box_input.detach().to(compute_type(box_input.dtype()));
    if (image_indices.defined()) {
        require_index(function, image_indices, x);
        ops::require_shape(function, "images", image_indices.shape(), {box_input.size(0)});
        boxes = compute_boxes, images = image_indices.to(DType::i64);
    } else {
        boxes = slice(compute_boxes, 1, 1, 5), images = select(compute_boxes, 1, 0).to(DType::i64);
    }
}

Tensor empty_result(const Tensor& x, const Shape& shape) {
    return reshape(slice(reshape(x, {x.numel()}), 0, 0, 0), shape);
}

}  // namespace detail

namespace {

using detail::AxisSamples;

/// Boxes along one axis of x: all of shape (K).
struct Side {
    std::int64_t size, bins;  // of the image, and of a box
    Tensor start, bin;        // in pixels
    Tensor samples;           // of a bin

    Side(const Tensor& boxes, int axis, std::int64_t size_, std::int64_t bins_, const RoiAlignOptions& options)
        : size(size_), bins(bins_) {
        const double offset = options.aligned ? 0.5 : 0;
        start = select(boxes, 1, axis) * options.spatial_scale - offset;
        Tensor length = select(boxes, 1, axis + 2) * options.spatial_scale - offset - start;
        if (!options.aligned) length = maximum(length, 1);
        bin = length * (1 / static_cast<double>(bins));
        // Divided rather than multiplied by the reciprocal: ceil() is sensitive to rounding.
        samples = options.sampling_ratio > 0 ? full_like(length, options.sampling_ratio)
                                             : maximum(ceil(length / static_cast<double>(bins)), 0);
    }
    /// (K, bins, max_count): whether the sample exists.
    [[nodiscard]] Tensor sample_mask(std::int64_t max_count) const {
        const Tensor j = arange(0, max_count, 1, {bin.dtype(), bin.device()});
        return expand(j < reshape(samples, {-1, 1, 1}), {bin.numel(), bins, max_count});
    }
    /// (K, bins, max_count, 2)
    [[nodiscard]] AxisSamples axis_samples(std::int64_t max_count) const {
        const TensorOptions options{bin.dtype(), bin.device()};
        const Tensor p = reshape(arange(0, bins, 1, options), {bins, 1}), j = arange(0, max_count, 1, options);
        const Tensor bin_size = reshape(bin, {-1, 1, 1});
        const Tensor position =
            reshape(start, {-1, 1, 1}) + p * bin_size + (j + 0.5) * bin_size / reshape(samples, {-1, 1, 1});
        const auto end = static_cast<double>(size);
        const Tensor inside = (position >= -1) & (position <= end);
        // Up to one pixel outside, the border pixel is used.
        const Tensor within = clamp(position, 0, end - 1), low = floor(within), part = within - low;
        return {.positions = clamp(stack({low, low + 1}, -1), 0, end - 1),
                .valid = expand(unsqueeze(inside & sample_mask(max_count), -1), {bin.numel(), bins, max_count, 2}),
                .weights = stack({1 - part, part}, -1)};
    }
};

/// The maximum number of samples along both sides, at least 1; synchronises.
std::vector<std::int64_t> max_samples(const std::vector<Side>& sides, std::int64_t sampling_ratio) {
    if (sampling_ratio > 0) return {sampling_ratio, sampling_ratio};
    const auto counts = stack({max(sides[0].samples), max(sides[1].samples)}).to(DType::f32).to_vector<float>();
    std::vector<std::int64_t> result;
    for (const float value : counts) {
        if (!(value < 1e6F))
            throw ValueError(
                fmt::format("roi_align: expected boxes of fewer than 10^6 samples in a bin, got {}", value));
        result.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(value)));
    }
    return result;
}

Tensor aligned(const Tensor& x, const detail::Regions& regions, Size2 output_size, const RoiAlignOptions& options) {
    const std::int64_t k = regions.boxes.size(0), channels = x.size(1), p = output_size[0], q = output_size[1];
    const std::vector<Side> sides{Side(regions.boxes, 1, x.size(2), p, options),
                                  Side(regions.boxes, 0, x.size(3), q, options)};
    const std::vector<std::int64_t> max_counts = max_samples(sides, options.sampling_ratio);
    // Samples of both sides along (K, P, Q, samples and neighbours of rows, of columns).
    std::vector<AxisSamples> samples;
    std::vector<Tensor> masks;
    for (int side = 0; side < 2; ++side) {
        const auto i = static_cast<std::size_t>(side);
        AxisSamples axis_samples = sides[i].axis_samples(max_counts[i]);
        const std::int64_t extent = 2 * max_counts[i];
        const Shape shape = side == 0 ? Shape{k, p, 1, extent, 1} : Shape{k, 1, q, 1, extent};
        for (Tensor* part : {&axis_samples.positions, &axis_samples.valid, &axis_samples.weights})
            *part = reshape(*part, shape);
        samples.push_back(std::move(axis_samples));
        masks.push_back(reshape(
            expand(unsqueeze(sides[i].sample_mask(max_counts[i]), -1), {k, side == 0 ? p : q, max_counts[i], 2}),
            shape));
    }
    const detail::PixelSamples pixels(samples, {x.size(2), x.size(3)}, reshape(regions.images, {k, 1, 1, 1, 1}));
    const Shape flat{k * p * q, 4 * max_counts[0] * max_counts[1]};
    const Tensor rows = detail::pixel_rows(x), indices = reshape(pixels.row_indices, flat),
                 weights = reshape(pixels.weights, flat);
    Tensor y;
    if (options.mode == "avg") {
        const Tensor count = maximum(sides[0].samples * sides[1].samples, 1);
        y = reshape(detail::gather_weighted_sum("roi_align", rows, indices, weights), {k, p, q, channels}) /
            reshape(count, {k, 1, 1, 1});
    } else {
        const Tensor gathered =
            reshape(detail::gather_rows("roi_align", rows, reshape(indices, {-1}), 0), {flat[0], flat[1], channels}) *
            reshape(weights, {flat[0], flat[1], 1});
        const Tensor mask = reshape(masks[0] & masks[1], {flat[0], flat[1], 1});
        const Tensor largest =
            amax(where(mask, gathered, -std::numeric_limits<double>::infinity()), {1});  // empty bins: minus infinity
        y = reshape(where(any(mask, {1}), largest, 0), {k, p, q, channels});
    }
    return permute(y, {0, 3, 1, 2});
}

}  // namespace

Tensor roi_align(const Tensor& x, const Tensor& boxes, Size2 output_size, const RoiAlignOptions& options,
                 const Tensor& images) {
    const FunctionCall call("roi_align", {{"x", x}, {"boxes", boxes}, {"images", images}},
                            {{"output_size", output_size},
                             {"spatial_scale", options.spatial_scale},
                             {"sampling_ratio", options.sampling_ratio},
                             {"aligned", options.aligned},
                             {"mode", options.mode}});
    call.require_defined({"x", "boxes"});
    const detail::Regions regions("roi_align", x, boxes, images, output_size);
    if (options.mode != "avg" && options.mode != "max")
        throw ValueError(fmt::format("roi_align: expected a mode of avg or max, got {}", options.mode));
    const Shape shape{boxes.size(0), x.size(1), output_size[0], output_size[1]};
    if (shape.numel() == 0 || x.numel() == 0) {
        if (shape.numel() > 0) throw ShapeError(fmt::format("roi_align: expected images, got {}", x.shape().str()));
        return call.result(detail::empty_result(x, shape));
    }
    return call.result(detail::decomposed_in_f32(
        [&](const auto& in) { return std::vector{aligned(in[0], regions, output_size, options)}; }, {x})[0]);
}

Tensor roi_pool(const Tensor& x, const Tensor& boxes, Size2 output_size, double spatial_scale, const Tensor& images) {
    const FunctionCall call("roi_pool", {{"x", x}, {"boxes", boxes}, {"images", images}},
                            {{"output_size", output_size}, {"spatial_scale", spatial_scale}});
    call.require_defined({"x", "boxes"});
    const detail::Regions regions("roi_pool", x, boxes, images, output_size);
    const std::int64_t k = boxes.size(0), channels = x.size(1);
    const Shape shape{k, channels, output_size[0], output_size[1]};
    if (shape.numel() == 0 || x.numel() == 0) {
        if (shape.numel() > 0) throw ShapeError(fmt::format("roi_pool: expected images, got {}", x.shape().str()));
        return call.result(detail::empty_result(x, shape));
    }
    // The kernel finds the indices of the maxima; gather_rows gathers them, which is differentiable.
    const Tensor upcast_x = x.detach().to(compute_type(x.dtype()));
    const Tensor kernel_indices(ops::roi_pool_indices(upcast_x.dense_view(), regions.boxes.dense_view(),
                                                      regions.images.dense_view(), output_size, spatial_scale));
    const Tensor plane_indices = kernel_indices.to(DType::i64),
                 plane = reshape(regions.images, {k, 1, 1, 1}) * channels +
                         reshape(arange(0, channels, 1, {DType::i64, x.device()}), {1, channels, 1, 1});
    const Tensor row_indices = where(plane_indices < 0, -1, plane * (x.size(2) * x.size(3)) + plane_indices);
    return call.result(reshape(
        detail::gather_rows("roi_pool", reshape(x, {x.numel(), 1}), reshape(row_indices, {shape.numel()}), 0), shape));
}

}  // namespace declivity
