// Floor 3, private. Functions whose kernels do not serve f16 and bf16 compute in f32 and round their result.
#pragma once

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// f16 and bf16 in f32; all others, undefined ones too, as they are.
inline Tensor widened(const Tensor& x) { return x.defined() ? x.to(compute_type(x.dtype())) : x; }

/// Whether both are of one half type. Where the types differ, the function itself refuses them.
inline bool both_half(const Tensor& a, const Tensor& b) { return is_half(a.dtype()) && a.dtype() == b.dtype(); }

}  // namespace declivity::detail
