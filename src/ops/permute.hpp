// Layer 2, private. Copies in another order of axes.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Copies by tiles transposed in registers, when the neighbours of one view are not neighbours in the other and
/// there is enough to copy. Views of one shape, type and device that do not overlap.
/// @return false when a plain loop serves better, and nothing was done
bool permuted_copy(const View& from, const View& to);

}  // namespace declivity::ops
