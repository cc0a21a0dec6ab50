#include <declivity/nn/conv_nd.hpp>

#include <cmath>

#include "conv_checks.hpp"

namespace declivity::nn {

Conv3d::Conv3d(std::int64_t in_channels, std::int64_t out_channels, Size3 kernel_size, const Conv3dOptions& options)
    : conv_{.stride = options.stride,
            .padding = options.padding,
            .dilation = options.dilation,
            .groups = options.groups},
      padding_mode_(options.padding_mode) {
    check_conv("Conv3d", in_channels, out_channels, options.groups, {kernel_size[0], kernel_size[1], kernel_size[2]});
    const TensorOptions tensor{options.dtype, options.device};
    const Shape shape{out_channels, in_channels / options.groups, kernel_size[0], kernel_size[1], kernel_size[2]};
    const double bound = 1 / std::sqrt(static_cast<double>(shape.numel() / out_channels));
    weight_ = parameter("weight", uniform(shape, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_channels}, -bound, bound, tensor) : Tensor());
}

Tensor Conv3d::forward(Tensor x) {
    if (padding_mode_ == PadMode::zeros) return conv3d(x, weight_, bias_, conv_);
    Conv3dParameters unpadded = conv_;
    unpadded.padding = 0;
    return conv3d(padded_for("Conv3d", x, weight_, conv_, padding_mode_), weight_, bias_, unpadded);
}

std::int64_t Conv3d::multiply_adds(const std::vector<Tensor>&, const std::vector<Tensor>& outputs) const {
    const Shape weight = weight_.shape();
    return outputs.at(0).numel() * weight.numel() / weight[0];
}

template <int N>
ConvTranspose<N>::ConvTranspose(std::int64_t in_channels, std::int64_t out_channels, SpatialSize<N> kernel_size,
                                const ConvTransposeOptions<N>& options)
    : options_(options) {
    Shape shape{in_channels, options.groups > 0 ? out_channels / options.groups : 0};
    for (const std::int64_t size : dims_of(kernel_size)) shape.push_back(size);
    if constexpr (N == 1) check_conv("ConvTranspose1d", in_channels, out_channels, options.groups, {shape[2]});
    else check_conv("ConvTranspose3d", in_channels, out_channels, options.groups, {shape[2], shape[3], shape[4]});
    const TensorOptions tensor{options.dtype, options.device};
    const double bound = 1 / std::sqrt(static_cast<double>(shape.numel() / in_channels));
    weight_ = parameter("weight", uniform(shape, -bound, bound, tensor));
    bias_ = parameter("bias", options.bias ? uniform({out_channels}, -bound, bound, tensor) : Tensor());
}

template <int N>
Tensor ConvTranspose<N>::forward(Tensor x) {
    const auto call = [&](auto function, auto parameters) {
        parameters.stride = options_.stride;
        parameters.padding = options_.padding;
        parameters.output_padding = options_.output_padding;
        parameters.dilation = options_.dilation;
        parameters.groups = options_.groups;
        return function(x, weight_, bias_, parameters);
    };
    if constexpr (N == 1) return call(conv_transpose1d, ConvTranspose1dParameters{});
    else return call(conv_transpose3d, ConvTranspose3dParameters{});
}

template <int N>
std::int64_t ConvTranspose<N>::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>&) const {
    const Shape weight = weight_.shape();
    return inputs.at(0).numel() * weight.numel() / weight[0];
}

template class ConvTranspose<1>;
template class ConvTranspose<3>;

Tensor Unfold::forward(Tensor x) { return unfold(x, windows_); }
Tensor Fold::forward(Tensor x) { return fold(x, output_size_, windows_); }

}  // namespace declivity::nn
