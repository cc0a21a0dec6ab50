#include <declivity/functions/functions.hpp>
#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/function_call.hpp>

#include "functions/support/conv_input.hpp"
#include "ops/conv/conv_shape.hpp"

namespace declivity {

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dParameters& options) {
    const detail::PaddingRecord padding(options.padding, 1);
    const FunctionCall call(
        "conv1d", {{"x", x}, {"weight", weight}, {"bias", bias}},
        {{"stride", options.stride}, padding.attribute(), {"dilation", options.dilation}, {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const Dims stride{options.stride}, dilation{options.dilation};
    const detail::ConvInput input("conv1d", x, weight, options.padding, dilation, stride);
    const Shape &in = input.x.shape(), &filter = weight.shape();
    const Shape out =
        ops::conv_shape("conv1d", in, filter, {stride.span(), input.padding.span(), dilation.span(), options.groups});
    detail::require_conv_operands("conv1d", x, weight, bias, out[1]);
    // Images of one row.
    const Tensor y =
        conv2d(reshape(input.x, {in[0], in[1], 1, in[2]}), reshape(weight, {filter[0], filter[1], 1, filter[2]}), bias,
               {.stride = {1, options.stride},
                .padding = {0, input.padding[0]},
                .dilation = {1, options.dilation},
                .groups = options.groups});
    return call.result(detail::drop_batch_if(reshape(y, out), input.unbatched));
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dParameters& options) {
    constexpr auto* name = "conv_transpose1d";
    const FunctionCall call(name, {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"stride", options.stride},
                             {"padding", options.padding},
                             {"output_padding", options.output_padding},
                             {"dilation", options.dilation},
                             {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const Tensor in = detail::as_batch(x, 1);
    const Shape out = detail::transposed_shape(
        name, in, weight, bias,
        {options.stride, options.padding, options.output_padding, options.dilation, options.groups});
    const Tensor y = conv_transpose2d(reshape(in, {in.size(0), in.size(1), 1, in.size(2)}),
                                      reshape(weight, {weight.size(0), weight.size(1), 1, weight.size(2)}), bias,
                                      {.stride = {1, options.stride},
                                       .padding = {0, options.padding},
                                       .output_padding = {0, options.output_padding},
                                       .dilation = {1, options.dilation},
                                       .groups = options.groups});
    return call.result(detail::drop_batch_if(reshape(y, out), detail::is_unbatched(x, 1)));
}

}  // namespace declivity
