// Layer 6. Folding of batch normalisation into the preceding layer, for evaluation.
#pragma once

#include <declivity/nn/batch_norm.hpp>
#include <declivity/nn/conv1d.hpp>
#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/conv_nd.hpp>
#include <declivity/nn/conv_transpose2d.hpp>
#include <declivity/nn/linear.hpp>

namespace declivity::nn {

/// @addtogroup nn_module
/// @{

/// Returns a layer in evaluation mode equivalent to `layer` followed by `norm`, up to rounding. norm must have running
/// statistics and as many channels as the layer's output; both are unchanged, and later training or loading does not
/// affect the result. Without gradients, batch_norm fuses into a preceding convolution by itself: use this function for
/// weights that are exported to files.
/// @throws ValueError for a norm without running statistics, ShapeError for a different number of channels
DECLIVITY_API Conv1d fuse_conv_bn(const Conv1d& layer, const BatchNorm& norm);
/// Overload for Conv2d.
DECLIVITY_API Conv2d fuse_conv_bn(const Conv2d& layer, const BatchNorm& norm);
/// Overload for Conv3d.
DECLIVITY_API Conv3d fuse_conv_bn(const Conv3d& layer, const BatchNorm& norm);
/// Overload for ConvTranspose1d.
DECLIVITY_API ConvTranspose1d fuse_conv_bn(const ConvTranspose1d& layer, const BatchNorm& norm);
/// Overload for ConvTranspose2d.
DECLIVITY_API ConvTranspose2d fuse_conv_bn(const ConvTranspose2d& layer, const BatchNorm& norm);
/// Overload for ConvTranspose3d.
DECLIVITY_API ConvTranspose3d fuse_conv_bn(const ConvTranspose3d& layer, const BatchNorm& norm);
/// fuse_conv_bn() for a linear layer followed by a normalisation of its features.
DECLIVITY_API Linear fuse_linear_bn(const Linear& layer, const BatchNorm& norm);

/// @}

}  // namespace declivity::nn
