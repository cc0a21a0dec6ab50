// Layer 2, private. Copies with permuted axes.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Copies by tiles transposed in registers, if the contiguous axes of the views differ and there are enough elements.
/// Views of one shape, type and device that do not overlap.
/// @return false, without copying, if a plain loop is faster
bool permuted_copy(const View& from, const View& to);

}  // namespace declivity::ops
