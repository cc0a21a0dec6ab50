// Layer 6, private. Checks of convolution constructors, and padding modes other than zeros.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <declivity/functions/conv.hpp>
#include <declivity/functions/padding.hpp>
#include <declivity/tensor/spatial.hpp>

namespace declivity::nn {

/// @throws ValueError naming the layer unless groups divide the channels and all sizes are at least 1
void check_conv(std::string_view layer, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups,
                std::initializer_list<std::int64_t> kernel_size);

/// x padded as for a convolution with this weight.
template <class Parameters>
Tensor padded_for(std::string_view layer, const Tensor& x, const Tensor& weight, const Parameters& conv, PadMode mode) {
    const Shape shape = weight.shape();
    Dims kernel_size;
    for (int axis = 2; axis < shape.rank(); ++axis) kernel_size.push_back(shape[axis]);
    const auto [begins, ends] = conv.padding.of(layer, kernel_size, dims_of(conv.dilation), dims_of(conv.stride));
    std::vector<std::int64_t> pads;
    for (int axis = begins.rank() - 1; axis >= 0; --axis) {
        pads.push_back(begins[axis]);
        pads.push_back(ends[axis]);
    }
    return pad(x, pads, mode);
}

}  // namespace declivity::nn
