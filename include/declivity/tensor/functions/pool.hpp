// Floor 3. Pooling of images.
#pragma once

#include <declivity/ops/pool2d.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// How the window moves: kernel_size, stride, padding, count_include_pad.
using ops::Pool2dParameters;
/// Largest of each window; ties go to the first.
DECLIVITY_API Tensor max_pool2d(const Tensor& x, const Pool2dParameters& options = {});
DECLIVITY_API Tensor avg_pool2d(const Tensor& x, const Pool2dParameters& options = {});
/// Mean over H and W: (N, C, H, W) -> (N, C, 1, 1).
DECLIVITY_API Tensor global_avg_pool2d(const Tensor& x);

}  // namespace declivity
