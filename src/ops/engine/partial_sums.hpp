// Layer 2, private. Reduction of split-K partial results, several in one launch (cl_kernels/engine/partial_sums.cl).
#pragma once

#include <span>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::ops {

/// result[i] = sum over k of partials[k][i], in that order; dense, the partials in the accumulation type.
struct SplitKPartial {
    View partials;  ///< (k, elements of the result)
    View result;
};

/// @param sums of one device, with results of one type
void reduce_partials(std::span<const SplitKPartial> sums, KernelStyle style);

/// The lazy sum of partials (k, elements of `shape`) over k. The first one needed launches all pending ones of this
/// thread in a batch.
/// @param dtype of the sum; that of the partials, or f16 or bf16 if they are f32
LazyArray lazy_reduce_partials(const View& partials, const Shape& shape, DType dtype);

}  // namespace declivity::ops
