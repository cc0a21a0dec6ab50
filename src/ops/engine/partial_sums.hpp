// Floor 2, private. Sums of partial results, of several results in one launch (cl_kernels/engine/partial_sums.cl).
#pragma once

#include <span>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::ops {

/// result[i] = sum over k of partials[k][i], in that order; dense, of one type.
struct PartialSum {
    View partials;  ///< (k, elements of the result)
    View result;
};

/// @param sums of one device and one type
void add_up(std::span<const PartialSum> sums, Family family);

}  // namespace declivity::ops
