#include <declivity/ops/conv2d.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity {

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
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
    (void)ops::conv2d_shape("conv1d", {in[0], in[1], 1, in[2]}, {filter[0], filter[1], 1, filter[2]},
                            {.stride = {1, options.stride},
                             .padding = {0, options.padding},
                             .dilation = {1, options.dilation},
                             .groups = options.groups});
    const Tensor y =
        conv2d(reshape(x, {in[0], in[1], 1, in[2]}), reshape(weight, {filter[0], filter[1], 1, filter[2]}), bias,
               {.stride = {1, options.stride},
                .padding = {0, options.padding},
                .dilation = {1, options.dilation},
                .groups = options.groups});
    return call.result(reshape(y, {in[0], filter[0], y.size(3)}));
}

}  // namespace declivity
