#include <declivity/ops/conv2d.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "conv2d_gradients.hpp"
#include "tensor_state.hpp"

namespace declivity {

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
    ops::require_rank(name, "x", x.shape(), 4, "N, C, H, W");
    ops::require_rank(name, "weight", weight.shape(), 4, "C, O / groups, R, S");
    ops::require_real(name, "x", x.dtype());
    if (x.size(1) != weight.size(0))
        throw ShapeError(fmt::format("{}: wants a weight of {} input channels for x {}, got {}", name, x.size(1),
                                     x.shape().str(), weight.shape().str()));
    Shape out{x.size(0), weight.size(1) * options.groups, 0, 0};
    for (int i = 0; i < 2; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t further = options.output_padding[at];
        if (further < 0 || further >= options.stride[at])
            throw ValueError(fmt::format(
                "{}: wants an output padding of at least 0 that is less than the stride, got {} for stride {}", name,
                further, options.stride[at]));
        out[2 + i] = (x.size(2 + i) - 1) * options.stride[at] - 2 * options.padding[at] +
                     options.dilation[at] * (weight.size(2 + i) - 1) + further + 1;
        if (out[2 + i] < 1)
            throw ShapeError(
                fmt::format("{}: wants a result of at least one pixel, got x {} and weight {} with padding "
                            "{} x {}",
                            name, x.shape().str(), weight.shape().str(), options.padding[0], options.padding[1]));
    }
    const Conv2dParameters conv{
        .stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups};
    (void)ops::conv2d_shape(name, out, weight.shape(), conv);
    if (bias.defined()) {
        ops::require_shape(name, "bias", bias.shape(), {out[1]});
        ops::require_alike(name, "x", x.dtype(), x.device(), "bias", bias.dtype(), bias.device());
    }
    ops::require_alike(name, "x", x.dtype(), x.device(), "weight", weight.dtype(), weight.device());
    Tensor y = detail::conv2d_input_gradient(name, x, weight, out, conv);
    return call.result(bias.defined() ? std::move(y) + reshape(bias, {1, out[1], 1, 1}) : y);
}

}  // namespace declivity
