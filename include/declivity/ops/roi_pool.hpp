// Layer 2. Pooling of regions: an operation that waits. All views are dense, on one device.
#pragma once

#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// In each of P x Q bins of each box the place h W + w of the first of the largest pixels, NaN being the largest, or -1
/// where a bin has none.
/// @param x (N, C, H, W), f32 or f64
/// @param boxes (K, 4) of x's type, times `scale` in pixels; their corners are rounded
/// @param images (K), i64; outside of [0, N): no pixels
/// @return (K, C, P, Q), i32
DECLIVITY_API LazyArray roi_pool_places(const View& x, const View& boxes, const View& images, Size2 output_size,
                                        double scale);

}  // namespace declivity::ops
