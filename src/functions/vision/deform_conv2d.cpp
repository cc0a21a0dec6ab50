#include <algorithm>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/vision.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "ops/conv/conv_shape.hpp"
#include "sampling.hpp"

namespace declivity {
namespace {

struct Parts {
    std::int64_t groups, offset_groups;
    Shape out;  // (N, O, P, Q)
};

Parts checked(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& bias, const Tensor& mask,
              const DeformConv2dOptions& options) {
    constexpr const char* name = "deform_conv2d";
    ops::require_real(name, "x", x.dtype());
    for (const auto& [what, operand] :
         {std::pair<const char*, const Tensor&>{"offset", offset}, {"weight", weight}, {"bias", bias}, {"mask", mask}})
        if (operand.defined())
            ops::require_alike(name, "x", x.dtype(), x.device(), what, operand.dtype(), operand.device());
    ops::require_rank(name, "x", x.shape(), 4, "N, C, H, W");
    ops::require_rank(name, "weight", weight.shape(), 4, "O, C / groups, R, S");
    ops::require_rank(name, "offset", offset.shape(), 4, "N, 2 G R S, P, Q");
    const std::int64_t channels = x.size(1), group_channels = weight.size(1), taps = weight.size(2) * weight.size(3);
    if (group_channels < 1 || taps < 1 || channels % group_channels != 0 || channels == 0 ||
        weight.size(0) % (channels / group_channels) != 0)
        throw ShapeError(fmt::format(
            "deform_conv2d: expected x of shape (N, C, H, W) and weight of shape (O, C / groups, R, S), O a multiple "
            "of groups, got {} and {}",
            x.shape().str(), weight.shape().str()));
    const std::int64_t groups = channels / group_channels;
    const auto pair = [](const Size2& size) { return std::array{size[0], size[1]}; };
    const auto stride = pair(options.stride), padding = pair(options.padding), dilation = pair(options.dilation);
    Parts parts{groups, 0, ops::conv_shape(name, x.shape(), weight.shape(), {stride, padding, dilation, groups})};
    parts.offset_groups = offset.size(1) / (2 * taps);
    if (parts.offset_groups < 1 || channels % parts.offset_groups != 0)
        throw ShapeError(
            fmt::format("deform_conv2d: expected an offset of 2 G {} channels, where G divides the {} of x, got {}",
                        taps, channels, offset.shape().str()));
    const Shape offset_shape{x.size(0), 2 * parts.offset_groups * taps, parts.out[2], parts.out[3]};
    ops::require_shape(name, "offset", offset.shape(), offset_shape);
    if (mask.defined())
        ops::require_shape(name, "mask", mask.shape(),
                           {offset_shape[0], offset_shape[1] / 2, offset_shape[2], offset_shape[3]});
    if (bias.defined()) ops::require_shape(name, "bias", bias.shape(), {weight.size(0)});
    return parts;
}

Tensor deform_convolve(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& mask,
                       const DeformConv2dOptions& options, const Parts& parts) {
    const std::int64_t n = x.size(0), channels = x.size(1), og = parts.offset_groups, group_channels = channels / og;
    const std::int64_t r = weight.size(2), s = weight.size(3), p = parts.out[2], q = parts.out[3];
    const std::int64_t images = n * og, positions = r * s * p * q;
    const TensorOptions compute_options{x.dtype(), x.device()};
    // Regular sampling positions plus offsets: (N G, R, S, P, Q).
    const auto steps = [&](int axis, std::int64_t taps, std::int64_t outs) {
        const auto i = static_cast<std::size_t>(axis);
        const Shape tap_shape = axis == 0 ? Shape{1, taps, 1, 1, 1} : Shape{1, 1, taps, 1, 1};
        const Shape out_shape = axis == 0 ? Shape{1, 1, 1, outs, 1} : Shape{1, 1, 1, 1, outs};
        return reshape(arange(0, taps, 1, compute_options) * options.dilation[i], tap_shape) +
               reshape(arange(0, outs, 1, compute_options) * options.stride[i] - options.padding[i], out_shape);
    };
    const Tensor offsets = reshape(offset, {images, r, s, 2, p, q});
    std::vector<detail::AxisSamples> samples;
    for (const int axis : {0, 1}) {
        const Tensor position = steps(axis, axis == 0 ? r : s, axis == 0 ? p : q) + select(offsets, 3, axis);
        detail::AxisSamples axis_samples =
            detail::linear_samples(reshape(position, {images, positions}), x.size(2 + axis));
        const Shape shape = axis == 0 ? Shape{images, positions, 2, 1} : Shape{images, positions, 1, 2};
        for (Tensor* part : {&axis_samples.positions, &axis_samples.valid, &axis_samples.weights})
            *part = reshape(*part, shape);
        samples.push_back(std::move(axis_samples));
    }
    const detail::PixelSamples pixels(samples, {x.size(2), x.size(3)},
                                      reshape(arange(0, images, 1, {DType::i64, x.device()}), {images, 1, 1, 1}));
    const Shape flat{images * positions, 4};
    const Tensor rows = detail::pixel_rows(reshape(x, {images, group_channels, x.size(2), x.size(3)}));
    Tensor columns = detail::gather_weighted_sum("deform_conv2d", rows, reshape(pixels.row_indices, flat),
                                                 reshape(pixels.weights, flat));
    if (mask.defined()) columns = columns * reshape(mask, {images * positions, 1});
    // (N, G, R S, P Q, C / G) as (N, groups, C / groups R S, P Q).
    columns = permute(reshape(columns, {n, og, r * s, p * q, group_channels}), {0, 1, 4, 2, 3});
    const std::int64_t groups = parts.groups, filters = weight.size(0) / groups, inner = channels / groups * r * s;
    const Tensor y = matmul(reshape(weight, {1, groups, filters, inner}), reshape(columns, {n, groups, inner, p * q}));
    return reshape(y, parts.out);
}

}  // namespace

Tensor deform_conv2d(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& bias,
                     const DeformConv2dOptions& options, const Tensor& mask) {
    const FunctionCall call("deform_conv2d",
                            {{"x", x}, {"offset", offset}, {"weight", weight}, {"bias", bias}, {"mask", mask}},
                            {{"stride", options.stride}, {"padding", options.padding}, {"dilation", options.dilation}});
    call.require_defined({"x", "offset", "weight"});
    const Parts parts = checked(x, offset, weight, bias, mask, options);
    return call.result(detail::decomposed_in_f32(
        [&](const auto& in) {
            const Tensor y = deform_convolve(in[0], in[1], in[2], in[3], options, parts);
            return std::vector{in[4].defined() ? y + reshape(in[4], {1, -1, 1, 1}) : y};
        },
        {x, offset, weight, mask, bias})[0]);
}

}  // namespace declivity
