// 3-D convolution by 2-D convolutions of slices. The depth is the first axis, so that the slices under each depth index
// of the filter are contiguous, as a batch of images.
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/function_call.hpp>

#include "autograd/decomposition.hpp"
#include "functions/support/conv_input.hpp"
#include "functions/support/rows.hpp"
#include "functions/support/windows.hpp"
#include "ops/conv/conv_shape.hpp"

namespace declivity {

namespace {

Tensor by_slices(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& out,
                 const Conv3dParameters& options, const Dims& padding) {
    const auto& [stride, conv_padding, dilation, groups] = options;
    const Shape& in = x.shape();
    // (D, N, C, H, W), dense.
    const Tensor slices = pad(permute(x, {2, 0, 1, 3, 4}), {padding[0], 0, 0, 0, 0}, {padding[0], 0, 0, 0, 0});
    Tensor y;
    for (std::int64_t depth_index = 0; depth_index < weight.size(2); ++depth_index) {
        const std::int64_t first = depth_index * dilation[0];
        const Tensor window = slice(slices, 0, first, first + (out[2] - 1) * stride[0] + 1, stride[0]);
        const Tensor part = conv2d(reshape(window, {out[2] * in[0], in[1], in[3], in[4]}),
                                   select(weight, 2, depth_index), depth_index == 0 ? bias : Tensor(),
                                   {.stride = {stride[1], stride[2]},
                                    .padding = {padding[1], padding[2]},
                                    .dilation = {dilation[1], dilation[2]},
                                    .groups = groups});
        y = y.defined() ? part + y : part;
    }
    return permute(reshape(y, {out[2], out[0], out[1], out[3], out[4]}), {1, 2, 0, 3, 4});
}

Tensor by_parts(const char* name, const Tensor& x, const Tensor& weight, const Shape& out,
                const ConvTranspose3dParameters& options) {
    const auto& [stride, padding, output_padding, dilation, groups] = options;
    const std::int64_t n = x.size(0), depth = x.size(2), kernel_depth = weight.size(2), rows = x.size(3),
                       columns = x.size(4);
    // Result of each slice for all depth indices of the filter, as channels: (D N, O Q, F, G).
    const Tensor slices = reshape(permute(x, {2, 0, 1, 3, 4}), {depth * n, x.size(1), rows, columns});
    const Tensor filter =
        reshape(weight, {weight.size(0), weight.size(1) * kernel_depth, weight.size(3), weight.size(4)});
    const Tensor parts = conv_transpose2d(slices, filter, {},
                                          {.stride = {stride[1], stride[2]},
                                           .padding = {padding[1], padding[2]},
                                           .output_padding = {output_padding[1], output_padding[2]},
                                           .dilation = {dilation[1], dilation[2]},
                                           .groups = groups});
    // Summed at their output positions along the depth; those outside of the result are dropped.
    const Tensor by_depth_index =
        permute(reshape(parts, {depth, n, out[1], kernel_depth, out[3], out[4]}), {0, 3, 1, 2, 4, 5});
    const Tensor positions =
        detail::window_indices(depth, stride[0], kernel_depth, dilation[0], x.device()) - padding[0];
    const Tensor sums =
        detail::scatter_add_rows(name, reshape(by_depth_index, {depth * kernel_depth, n * out[1] * out[3] * out[4]}),
                                 reshape(positions, {depth * kernel_depth}), out[2]);
    return permute(reshape(sums, {out[2], n, out[1], out[3], out[4]}), {1, 2, 0, 3, 4});
}

}  // namespace

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dParameters& options) {
    constexpr auto* name = "conv3d";
    const detail::PaddingRecord padding_attribute(options.padding, 3);
    const FunctionCall call(name, {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"stride", options.stride},
                             padding_attribute.attribute(),
                             {"dilation", options.dilation},
                             {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const Dims stride = dims_of(options.stride), dilation = dims_of(options.dilation);
    const detail::ConvInput input(name, x, weight, options.padding, dilation, stride);
    const Dims& padding = input.padding;
    const Shape& in = input.x.shape();
    const Shape out =
        ops::conv_shape(name, in, weight.shape(), {stride.span(), padding.span(), dilation.span(), options.groups});
    detail::require_conv_operands(name, x, weight, bias, out[1]);
    const Tensor y = detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& operands) {
            return std::vector{by_slices(operands[0], operands[1], operands[2], out, options, padding)};
        },
        {input.x, weight, bias})[0];
    return call.result(detail::drop_batch_if(y, input.unbatched));
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dParameters& options) {
    constexpr auto* name = "conv_transpose3d";
    const FunctionCall call(name, {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"stride", options.stride},
                             {"padding", options.padding},
                             {"output_padding", options.output_padding},
                             {"dilation", options.dilation},
                             {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const Tensor in = detail::as_batch(x, 3);
    const auto& [stride, padding, output_padding, dilation, groups] = options;
    const Shape out = detail::transposed_shape(
        name, in, weight, bias,
        {dims_of(stride), dims_of(padding), dims_of(output_padding), dims_of(dilation), groups});
    const Tensor y = detail::decomposed_in_f32(
        [&](const std::vector<Tensor>& operands) {
            return std::vector{detail::with_bias(by_parts(name, operands[0], operands[1], out, options), operands[2])};
        },
        {in, weight, bias})[0];
    return call.result(detail::drop_batch_if(y, detail::is_unbatched(x, 3)));
}

}  // namespace declivity
