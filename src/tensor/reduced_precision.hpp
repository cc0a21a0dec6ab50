// Layer 3, private. Functions that are compositions of others, or whose kernels do not serve f16 and bf16, compute in
// f32 and round their result once.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// f16 and bf16 in f32; all others, undefined ones too, as they are.
inline Tensor widened(const Tensor& x) { return x.defined() ? x.to(compute_type(x.dtype())) : x; }

/// function(inputs...) of inputs in f32, rounded to `type`: nothing within a composition is rounded to f16 or bf16.
template <class Function, class... Inputs>
Tensor in_f32(DType type, const Function& function, const Inputs&... inputs) {
    return function(widened(inputs)...).to(type);
}

/// Whether both are of one half type. Where the types differ, the function itself refuses them.
inline bool both_half(const Tensor& a, const Tensor& b) { return is_16bit_float(a.dtype()) && a.dtype() == b.dtype(); }

}  // namespace declivity::detail
