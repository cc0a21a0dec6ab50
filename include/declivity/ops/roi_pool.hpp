// Layer 2. Region-of-interest pooling: a deferred operation. All views are dense, on one device.
#pragma once

#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Position h W + w of the largest pixel in each of P x Q bins of each box; ties go to the first, NaN counts as the
/// largest, and an empty bin gives -1.
/// @param x (N, C, H, W), f32 or f64
/// @param boxes (K, 4) of x's type, in pixels when multiplied by `scale`; corners are rounded
/// @param images (K), i64, image of each box; outside of [0, N): no pixels
/// @return (K, C, P, Q), i32
DECLIVITY_API LazyArray roi_pool_indices(const View& x, const View& boxes, const View& images, Size2 output_size,
                                         double scale);

// ---- deprecated names of version 0.1

[[deprecated("ops::roi_pool_indices")]] inline LazyArray roi_pool_places(const View& x, const View& boxes,
                                                                         const View& images, Size2 output_size,
                                                                         double scale) {
    return roi_pool_indices(x, boxes, images, output_size, scale);
}

/// @}

}  // namespace declivity::ops
