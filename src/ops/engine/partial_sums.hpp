// Layer 2, private. Sums of partial results, of several results in one launch (cl_kernels/engine/partial_sums.cl).
#pragma once

#include <span>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::ops {

/// result[i] = sum over k of partials[k][i], in that order; dense, the parts in the type that it is computed in.
struct SplitKPartial {
    View partials;  ///< (k, elements of the result)
    View result;
};

/// @param sums of one device, their results of one type
void reduce_partials(std::span<const SplitKPartial> sums, KernelStyle style);

/// The sum of partials (k, elements of `shape`) over k as a value, launched together with all others of this thread
/// that wait when one of them is needed.
/// @param dtype of the sum; that of the parts, or a half type where they are f32
LazyArray lazy_reduce_partials(const View& partials, const Shape& shape, DType dtype);

}  // namespace declivity::ops
