// Convolution and its two gradients, each the gradient of the others: y is linear in x and in the weight.
#include <declivity/ops/conv2d.hpp>

#include <optional>
#include <string>
#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>

#include "autograd/graph.hpp"
#include "conv2d_gradients.hpp"
#include "functions/support/conv_input.hpp"

namespace declivity {
namespace {

using detail::conv2d_input_gradient;

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const ops::Conv2dParameters& options);

/// Gradient for weights of this shape.
Tensor weight_gradient(const Tensor& x, const Tensor& g, const Shape& weight_shape,
                       const ops::Conv2dParameters& options) {
    const ops::LazyArray out =
        ops::conv2d_weight_gradients(x.dense_view(), g.dense_view(), weight_shape, options, false).weight;
    if (!any_requires_grad({x, g})) return Tensor(out);
    return attach_backward(
        "conv2d_weight_gradient", {x, g}, out,
        [x = detail::saved_for(g, x), g = detail::saved_for(x, g), x_shape = x.shape(),
         options](const GradientContext& context) {
            const Tensor& u = context.gradient();
            constexpr auto* name = "conv2d_weight_gradient";
            return std::vector{context.needs(0)
                                   ? conv2d_input_gradient("conv2d_input_gradient", g.get(name), u, x_shape, options)
                                   : Tensor(),
                               context.needs(1) ? convolve(x.get(name), u, {}, options) : Tensor()};
        },
        RuleKind::differentiable);
}

}  // namespace

Tensor detail::conv2d_input_gradient(std::string_view name, const Tensor& g, const Tensor& weight, const Shape& x,
                                     const ops::Conv2dParameters& options) {
    const ops::LazyArray out = ops::conv2d_input_gradient(g.dense_view(), weight.dense_view(), x, options);
    if (!any_requires_grad({g, weight})) return Tensor(out);
    return attach_backward(
        name, {g, weight}, out,
        [g = detail::saved_for(weight, g), weight = detail::saved_for(g, weight), weight_shape = weight.shape(),
         options, name = std::string(name)](const GradientContext& context) {
            const Tensor& u = context.gradient();
            return std::vector{context.needs(0) ? convolve(u, weight.get(name), {}, options) : Tensor(),
                               context.needs(1) ? weight_gradient(u, g.get(name), weight_shape, options) : Tensor()};
        },
        RuleKind::differentiable);
}

namespace {

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const ops::Conv2dParameters& options) {
    const ops::View in = x.dense_view(), filter = weight.dense_view();
    const std::optional<ops::View> offset = bias.defined() ? std::optional(bias.dense_view()) : std::nullopt;
    const ops::LazyArray out = ops::conv2d(in, filter, offset, options, detail::use_of(weight));
    if (!any_requires_grad({x, weight, bias})) return Tensor(out);
    // Saves only what the required gradients need: with frozen weights not the input.
    return attach_backward(
        "conv2d", {x, weight, bias}, out,
        [x = detail::saved_for(weight, x), weight = detail::saved_for(x, weight), x_shape = in.shape,
         weight_shape = filter.shape, options](const GradientContext& context) {
            // Made contiguous once for all three gradients.
            const Tensor g = grad_enabled() ? context.gradient() : Tensor(context.gradient().dense_view());
            std::vector<Tensor> gradients(3);
            if (context.needs(0))
                gradients[0] =
                    conv2d_input_gradient("conv2d_input_gradient", g, weight.get("conv2d"), x_shape, options);
            if (context.needs(1) && (!context.needs(2) || grad_enabled()))
                gradients[1] = weight_gradient(x.get("conv2d"), g, weight_shape, options);
            if (context.needs(2) && grad_enabled()) {
                gradients[2] = sum(g, {0, 2, 3});
            } else if (context.needs(1) && context.needs(2)) {  // by one kernel if the strategy has one
                const auto [grad_weight, grad_bias] = ops::conv2d_weight_gradients(
                    x.get("conv2d").dense_view(), g.dense_view(), weight_shape, options, true);
                gradients[1] = Tensor(grad_weight);
                gradients[2] = Tensor(grad_bias);
            } else if (context.needs(2)) {
                const ops::View view = g.dense_view();
                gradients[2] = Tensor(ops::View::make(view.device(), view.dtype, {weight_shape[0]}));
                ops::conv2d_backward_bias(view, gradients[2].view());
            }
            return gradients;
        },
        RuleKind::differentiable);
}

/// Integers, by im2col: no strategy supports them.
Tensor convolved_integers(const detail::ConvInput& input, const Tensor& weight, const Tensor& bias,
                          const Conv2dParameters& options) {
    const ops::Conv2dParameters conv{.stride = options.stride,
                                     .padding = {input.padding[0], input.padding[1]},
                                     .dilation = options.dilation,
                                     .groups = options.groups};
    const Shape out = ops::conv2d_shape("conv2d", input.x.shape(), weight.shape(), conv);
    detail::require_conv_operands("conv2d", input.x, weight, bias, out[1]);
    const Tensor columns = unfold(input.x, {.kernel_size = {weight.size(2), weight.size(3)},
                                            .stride = conv.stride,
                                            .padding = conv.padding,
                                            .dilation = conv.dilation});
    const std::int64_t taps = weight.numel() / weight.size(0), filters = out[1] / conv.groups;
    const Tensor products = reshape(columns, {out[0], conv.groups, 1, taps, out[2] * out[3]}) *
                            reshape(weight, {1, conv.groups, filters, taps, 1});
    return detail::with_bias(reshape(sum(products, {3}).to(weight.dtype()), out), bias);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParameters& options) {
    const detail::PaddingRecord padding(options.padding, 2);
    const FunctionCall call(
        "conv2d", {{"x", x}, {"weight", weight}, {"bias", bias}},
        {{"stride", options.stride}, padding.attribute(), {"dilation", options.dilation}, {"groups", options.groups}});
    call.require_defined({"x", "weight"});
    const detail::ConvInput input("conv2d", x, weight, options.padding, dims_of(options.dilation),
                                  dims_of(options.stride));
    if (is_integer(x.dtype()))
        return call.result(detail::drop_batch_if(convolved_integers(input, weight, bias, options), input.unbatched));
    const Tensor y = convolve(input.x, weight, bias,
                              {.stride = options.stride,
                               .padding = {input.padding[0], input.padding[1]},
                               .dilation = options.dilation,
                               .groups = options.groups});
    return call.result(detail::drop_batch_if(y, input.unbatched));
}

}  // namespace declivity
