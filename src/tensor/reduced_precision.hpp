// Layer 3, private. Functions that are decomposed, or have no kernels for f16 and bf16, are computed in f32 and their
// result is rounded once.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Upcasts f16 and bf16 to f32; other tensors, including undefined ones, are returned unchanged.
inline Tensor upcast(const Tensor& x) { return x.defined() ? x.to(compute_type(x.dtype())) : x; }

/// function(inputs...) of inputs upcast to f32, rounded to `type`: no intermediate result is rounded to f16 or bf16.
template <class Function, class... Inputs>
Tensor in_f32(DType type, const Function& function, const Inputs&... inputs) {
    return function(upcast(inputs)...).to(type);
}

/// Returns whether both are of one 16-bit float type. If the types differ, the function itself rejects them.
inline bool both_16bit(const Tensor& a, const Tensor& b) { return is_16bit_float(a.dtype()) && a.dtype() == b.dtype(); }

}  // namespace declivity::detail
