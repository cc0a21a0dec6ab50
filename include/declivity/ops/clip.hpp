// Floor 2. Clipping gradients by their common norm.
#pragma once

#include <declivity/ops/multi_tensor.hpp>

namespace declivity::ops {

/// Scales all tensors by min(1, max_norm / (norm + 1e-6)), where norm is the square root of the sum of the squares of
/// all elements (Pascanu et al. 2013). Nothing waits for the host.
/// @param tensors one role
/// @return f32 or f64 [1]: the norm before clipping, on the device
DECLIVITY_API View clip_norm(const MultiTensor& tensors, double max_norm);

}  // namespace declivity::ops
