#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity {

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dParameters& options) {
    const FunctionCall call("conv1d", {{"x", x}, {"weight", weight}, {"bias", bias}},
                            {{"stride", options.stride},
                             {"padding", options.padding},
                             {"dilation", options.dilation},
                             {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    ops::require_rank("conv1d", "x", x.shape(), 3, "N, C, L");
    ops::require_rank("conv1d", "weight", weight.shape(), 3, "O, C / groups, R");
    // Images of one line.
    const Shape &in = x.shape(), &filter = weight.shape();
    const Conv2dParameters conv{.stride = {1, options.stride},
                                .padding = {0, options.padding},
                                .dilation = {1, options.dilation},
                                .groups = options.groups};
    const Shape line{in[0], in[1], 1, in[2]}, line_filter{filter[0], filter[1], 1, filter[2]};
    (void)ops::conv2d_shape("conv1d", line, line_filter, conv);
    const Tensor y = conv2d(reshape(x, line), reshape(weight, line_filter), bias, conv);
    return call.result(reshape(y, {in[0], filter[0], y.size(3)}));
}

}  // namespace declivity
