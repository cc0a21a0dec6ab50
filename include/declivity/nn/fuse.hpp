// Layer 4. Batch normalisation of evaluation as a part of the layer before it.
#pragma once

#include <declivity/nn/batch_norm.hpp>
#include <declivity/nn/conv1d.hpp>
#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/conv_nd.hpp>
#include <declivity/nn/conv_transpose2d.hpp>
#include <declivity/nn/linear.hpp>

namespace declivity::nn {

/// A layer in evaluation mode that gives what `norm` makes of the results of `layer`, but for rounding, which needs a
/// norm with running statistics of as many channels as the layer gives; both stay as they are, and what is trained or
/// loaded later has no part in it. Without a gradient, batch_norm does the same by itself where it follows a
/// convolution: this is for weights that are written to files.
/// @throws ValueError for a norm without running statistics, ShapeError for one of other channels
DECLIVITY_API Conv1d fuse_conv_bn(const Conv1d& layer, const BatchNorm& norm);
DECLIVITY_API Conv2d fuse_conv_bn(const Conv2d& layer, const BatchNorm& norm);
DECLIVITY_API Conv3d fuse_conv_bn(const Conv3d& layer, const BatchNorm& norm);
DECLIVITY_API ConvTranspose1d fuse_conv_bn(const ConvTranspose1d& layer, const BatchNorm& norm);
DECLIVITY_API ConvTranspose2d fuse_conv_bn(const ConvTranspose2d& layer, const BatchNorm& norm);
DECLIVITY_API ConvTranspose3d fuse_conv_bn(const ConvTranspose3d& layer, const BatchNorm& norm);
DECLIVITY_API Linear fuse_linear_bn(const Linear& layer, const BatchNorm& norm);

}  // namespace declivity::nn
