#include <declivity/ops/conv2d.hpp>

#include <optional>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>

#include "tensor_state.hpp"

namespace declivity {

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
    const Span span("conv2d");
    if (!x.defined() || !weight.defined()) throw ValueError("conv2d: wants x and weight, got an undefined tensor");
    const ops::Conv2dOptions parameters{
        .stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups};
    const ops::View in = x.dense_view(), filter = weight.dense_view();
    const std::optional<ops::View> offset = bias.defined() ? std::optional(bias.dense_view()) : std::nullopt;
    const ops::Value out = ops::conv2d(in, filter, offset, parameters, detail::use_of(weight));
    if (!recorded({x, weight, bias})) return Tensor(out);
    // What is kept is what the gradients that somebody wants are made of: with frozen weights not the input.
    return differentiable("conv2d", {x, weight, bias}, out,
                          [x = detail::saved_for(weight, x), weight = detail::saved_for(x, weight), from = in.shape,
                           filters = filter.shape, parameters](const GradientContext& context) {
                              const ops::View g = context.gradient().dense_view();
                              std::vector<Tensor> gradients(3);
                              if (context.needs(0))
                                  gradients[0] = Tensor(ops::conv2d_input_gradient(g, weight.get("conv2d").dense_view(),
                                                                                   from, parameters));
                              if (context.needs(1)) {
                                  const auto [for_weight, for_bias] = ops::conv2d_weight_gradients(
                                      x.get("conv2d").dense_view(), g, filters, parameters, context.needs(2));
                                  gradients[1] = Tensor(for_weight);
                                  if (for_bias) gradients[2] = Tensor(for_bias);
                              } else if (context.needs(2)) {
                                  const ops::View gradient = ops::View::make(g.device(), g.dtype, {filters[0]});
                                  ops::conv2d_backward_bias(g, gradient);
                                  gradients[2] = Tensor(gradient);
                              }
                              return gradients;
                          });
}

}  // namespace declivity
