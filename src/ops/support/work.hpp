// Layer 2, private. Work estimates of operators for profiles (runtime/scope.hpp).
#pragma once

#include <declivity/ops/view.hpp>
#include <declivity/runtime/scope.hpp>

namespace declivity::ops {

/// Bytes of a view's elements, counting repeated ones once.
inline double bytes_of(const View& view) {
    double elements = 1;
    for (int axis = 0; axis < view.rank(); ++axis)
        if (view.strides[axis] != 0 || view.shape[axis] == 0) elements *= static_cast<double>(view.shape[axis]);
    return view.buffer ? elements * static_cast<double>(size_of(view.dtype)) : 0;
}

/// @param each FLOPs for each element of `of`, whose type is that of the arithmetic
/// @param others all other operands that are read or written
template <class... Views>
Work work_each(double each, const View& of, const Views&... others) {
    return {.flops = each * static_cast<double>(of.numel()),
            .bytes = (bytes_of(of) + ... + bytes_of(others)),
            .f64 = of.dtype == DType::f64};
}

}  // namespace declivity::ops
