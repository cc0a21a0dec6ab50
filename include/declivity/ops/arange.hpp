// Layer 2. Evenly spaced values.
#pragma once

#include <declivity/ops/scalar.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[i] = start + i * step, a dense vector of any type but bool.
DECLIVITY_API void arange(const View& out, Scalar start, Scalar step);

/// @}

}  // namespace declivity::ops
