// Floor 2, private. Operands of matrix products, copied into panels (cl_kernels/panels.cl) for CPU-like devices.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Copies a matrix for each first index of a view of three axes into panels `width` wide along axis `across`, each
/// [k][width] for the index k of axis `along`, with zeros behind the edge. Gives (matrices, elements of one matrix); a view
/// whose first stride is 0 is copied once.
View pack_panels(const View& operand, int across, int along, std::int64_t width);

}  // namespace declivity::ops
