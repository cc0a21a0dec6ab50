#include <declivity/functions/functions.hpp>
#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/function_call.hpp>

#include "autograd/decomposition.hpp"
#include "conv2d_gradients.hpp"
#include "functions/support/conv_input.hpp"

namespace declivity {
namespace {

/// Integers, by im2col: no strategy supports them.
Tensor conv_transpose_integers(const Tensor& x, const Tensor& weight, const Shape& out,
                               const ConvTranspose2dParameters& options) {
    const std::int64_t groups = options.groups, channels = x.size(1) / groups, taps = weight.numel() / weight.size(0);
    const std::int64_t pixels = x.size(2) * x.size(3);
    const Tensor products =
        reshape(x, {x.size(0), groups, channels, 1, pixels}) * reshape(weight, {1, groups, channels, taps, 1});
    return fold(reshape(sum(products, {2}).to(x.dtype()), {x.size(0), groups * taps, pixels}), {out[2], out[3]},
                {.kernel_size = {weight.size(2), weight.size(3)},
                 .stride = options.stride,
                 .padding = options.padding,
                 .dilation = options.dilation});
}

}  // namespace

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dParameters& options) {
    constexpr auto* name = "conv_transpose2d";
    const FunctionCall call(name, {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"stride", options.stride},
                             {"padding", options.padding},
                             {"output_padding", options.output_padding},
                             {"dilation", options.dilation},
                             {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const Tensor in = detail::as_batch(x, 2);
    const Dims padding = dims_of(options.padding), output_padding = dims_of(options.output_padding);
    const Shape out = detail::transposed_shape(
        name, in, weight, bias,
        {dims_of(options.stride), padding, output_padding, dims_of(options.dilation), options.groups});
    Tensor y;
    if (output_padding[0] >= options.stride[0] || output_padding[1] >= options.stride[1]) {
        // The result is larger than a convolution's input could be: computed in full, then cropped or zero-padded.
        y = detail::decomposed_in_f32(
            [&](const std::vector<Tensor>& operands) {
                const Tensor uncropped = conv_transpose2d(
                    operands[0], operands[1], {},
                    {.stride = options.stride, .dilation = options.dilation, .groups = options.groups});
                return std::vector{detail::with_bias(pad(uncropped, {-padding[1], output_padding[1] - padding[1],
                                                                     -padding[0], output_padding[0] - padding[0]}),
                                                     operands[2])};
            },
            {in, weight, bias})[0];
    } else if (is_integer(x.dtype())) {
        y = detail::with_bias(conv_transpose_integers(in, weight, out, options), bias);
    } else {
        y = detail::decomposed_in_f32(
            [&](const std::vector<Tensor>& operands) {
                return std::vector{detail::with_bias(detail::conv2d_input_gradient(name, operands[0], operands[1], out,
                                                                                   {.stride = options.stride,
                                                                                    .padding = options.padding,
                                                                                    .dilation = options.dilation,
                                                                                    .groups = options.groups}),
                                                     operands[2])};
            },
            {in, weight, bias})[0];
    }
    return call.result(detail::drop_batch_if(y, detail::is_unbatched(x, 2)));
}

}  // namespace declivity
