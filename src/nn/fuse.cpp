#include <declivity/nn/fuse.hpp>

#include <string_view>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

/// The norm as an affine function: x * factor + offset, per channel.
struct Affine {
    Tensor factor, offset;

    Affine(std::string_view function, const BatchNorm& norm, std::int64_t channels) {
        const Tensor mean = norm.running_mean(), var = norm.running_var();
        if (!mean.defined())
            throw ValueError(fmt::format("{}: expected a norm with running statistics, got one without", function));
        if (mean.numel() != channels)
            throw ShapeError(
                fmt::format("{}: expected a norm of {} channels, got one of {}", function, channels, mean.numel()));
        const DType compute = compute_type(mean.dtype());
        factor = pow(var.to(compute) + norm.eps(), -0.5);
        if (norm.weight().defined()) factor = factor * norm.weight().to(compute);
        offset = -mean.to(compute) * factor;
        if (norm.bias().defined()) offset = offset + norm.bias().to(compute);
    }
};

/// Writes the folded weights to `result`. @param axis of the weight's output channels; @param groups number of groups
template <class FusedLayer>
FusedLayer fold_into(const Affine& affine, const Tensor& weight, const Tensor& bias, int axis, std::int64_t groups,
                     FusedLayer result) {
    Shape shape;
    for (int i = 0; i < weight.rank(); ++i) shape.push_back(1);
    // The weight of a transposed convolution has the inputs of all groups along axis 0, the outputs of one group along
    // axis 1.
    Tensor factor = affine.factor;
    if (axis == 1) {
        const std::int64_t ins = weight.size(0) / groups, outs = weight.size(1);
        factor = reshape(expand(reshape(factor, {groups, 1, outs}), {groups, ins, outs}), {weight.size(0), outs});
        shape[0] = weight.size(0), shape[1] = outs;
    } else {
        shape[0] = weight.size(0);
    }
    result.weight().copy_((weight.to(factor.dtype()) * reshape(factor, shape)).to(weight.dtype()));
    Tensor offset = affine.offset;
    if (bias.defined()) offset = offset + bias.to(offset.dtype()) * affine.factor;
    result.bias().copy_(offset.to(weight.dtype()));
    result.eval();
    return result;
}

/// Spatial sizes of a weight.
template <int N>
SpatialSize<N> kernel_size(const Shape& weight) {
    if constexpr (N == 1) return weight[2];
    else if constexpr (N == 2) return {weight[2], weight[3]};
    else return {weight[2], weight[3], weight[4]};
}

/// Options common to all convolutions.
template <class Options, class Parameters>
Options options_of(const Parameters& conv, const Tensor& weight) {
    Options options;
    options.stride = conv.stride;
    options.padding = conv.padding;
    options.dilation = conv.dilation;
    options.groups = conv.groups;
    options.dtype = weight.dtype();
    options.device = weight.device();
    return options;
}

template <int N, class Options, class Layer>
Layer fused(const Layer& layer, const BatchNorm& norm) {
    const NoGrad no_grad;
    const Tensor weight = layer.weight();
    const std::int64_t groups = layer.options().groups;
    const Affine affine("fuse_conv_bn", norm, weight.size(0));
    auto options = options_of<Options>(layer.options(), weight);
    options.padding_mode = layer.padding_mode();
    return fold_into(affine, weight, layer.bias(), 0, groups,
                     Layer(weight.size(1) * groups, weight.size(0), kernel_size<N>(weight.shape()), options));
}

template <int N, class Options, class Layer>
Layer fused_transpose(const Layer& layer, const BatchNorm& norm) {
    const NoGrad no_grad;
    const Tensor weight = layer.weight();
    const std::int64_t groups = layer.options().groups;
    const Affine affine("fuse_conv_bn", norm, weight.size(1) * groups);
    auto options = options_of<Options>(layer.options(), weight);
    options.output_padding = layer.options().output_padding;
    return fold_into(affine, weight, layer.bias(), 1, groups,
                     Layer(weight.size(0), weight.size(1) * groups, kernel_size<N>(weight.shape()), options));
}

}  // namespace

Conv1d fuse_conv_bn(const Conv1d& layer, const BatchNorm& norm) { return fused<1, Conv1dOptions>(layer, norm); }
Conv2d fuse_conv_bn(const Conv2d& layer, const BatchNorm& norm) { return fused<2, Conv2dOptions>(layer, norm); }
Conv3d fuse_conv_bn(const Conv3d& layer, const BatchNorm& norm) { return fused<3, Conv3dOptions>(layer, norm); }

ConvTranspose1d fuse_conv_bn(const ConvTranspose1d& layer, const BatchNorm& norm) {
    return fused_transpose<1, ConvTranspose1dOptions>(layer, norm);
}

ConvTranspose2d fuse_conv_bn(const ConvTranspose2d& layer, const BatchNorm& norm) {
    return fused_transpose<2, ConvTranspose2dOptions>(layer, norm);
}

ConvTranspose3d fuse_conv_bn(const ConvTranspose3d& layer, const BatchNorm& norm) {
    return fused_transpose<3, ConvTranspose3dOptions>(layer, norm);
}

Linear fuse_linear_bn(const Linear& layer, const BatchNorm& norm) {
    const NoGrad no_grad;
    const Tensor weight = layer.weight();
    const Affine affine("fuse_linear_bn", norm, weight.size(0));
    return fold_into(affine, weight, layer.bias(), 0, 1,
                     Linear(weight.size(1), weight.size(0), {.dtype = weight.dtype(), .device = weight.device()}));
}

}  // namespace declivity::nn
