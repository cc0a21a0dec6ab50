#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>

#include "ops/conv/conv_shape.hpp"

namespace declivity {

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dParameters& options) {
    const FunctionCall call("conv1d", {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"stride", options.stride},
                             {"padding", options.padding},
                             {"dilation", options.dilation},
                             {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const Shape &in = x.shape(), &filter = weight.shape();
    const std::int64_t stride[] = {options.stride}, padding[] = {options.padding}, dilation[] = {options.dilation};
    const Shape out = ops::conv_shape("conv1d", in, filter, {stride, padding, dilation, options.groups});
    if (bias.defined()) ops::require_shape("conv1d", "bias", bias.shape(), {out[1]});
    // Images of one line.
    const Tensor y =
        conv2d(reshape(x, {in[0], in[1], 1, in[2]}), reshape(weight, {filter[0], filter[1], 1, filter[2]}), bias,
               {.stride = {1, options.stride},
                .padding = {0, options.padding},
                .dilation = {1, options.dilation},
                .groups = options.groups});
    return call.result(reshape(y, out));
}

}  // namespace declivity
