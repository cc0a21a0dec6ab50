// Floor 3. Pooling of images.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct Pool2dOptions {
    Size2 window = 2;
    Size2 stride = 0;           ///< 0: as the window
    Size2 padding = 0;          ///< at most half the window
    bool count_padding = true;  ///< avg_pool2d: padded zeros count in the average
};
/// Largest of each window; ties go to the first.
DECLIVITY_API Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
DECLIVITY_API Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// Mean over H and W: (N, C, H, W) -> (N, C, 1, 1).
DECLIVITY_API Tensor global_avg_pool2d(const Tensor& x);

}  // namespace declivity
