// Layer 3, private. Boxes of several images, as roi_align and roi_pool take them.
#pragma once

#include <declivity/ops/shape.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Checked and taken apart.
struct Regions {
    Tensor boxes;   ///< (K, 4) in f32 or f64, outside of any graph
    Tensor images;  ///< (K), i64

    /// x (N, C, H, W), boxes (K, 5), or (K, 4) with images (K).
    Regions(const char* function, const Tensor& x, const Tensor& boxes, const Tensor& images, Size2 output_size);
};

/// Of no elements, in the graph of x.
Tensor nothing_of(const Tensor& x, const Shape& shape);

}  // namespace declivity::detail
