// Layer 2. Index of the largest element.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Index along `axis` of the first largest element; NaN counts as the largest.
/// @param x any type, dense; @param out i64, dense, the shape of x with the axis removed or of size 1
/// @throws ShapeError when the axis has no elements
DECLIVITY_API void argmax(const View& x, int axis, const View& out);

/// @}

}  // namespace declivity::ops
