// Layer 5, private. Boxes of several images, the operands of roi_align and roi_pool.
#pragma once

#include <declivity/ops/shape.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Checked boxes and the image index of each.
struct Regions {
    Tensor boxes;   ///< (K, 4) in f32 or f64, detached
    Tensor images;  ///< (K), i64

    /// x (N, C, H, W), boxes (K, 5), or (K, 4) with images (K).
    Regions(const char* function, const Tensor& x, const Tensor& boxes, const Tensor& images, Size2 output_size);
};

/// An empty result, in the graph of x.
Tensor empty_result(const Tensor& x, const Shape& shape);

}  // namespace declivity::detail
