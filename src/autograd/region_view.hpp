// Layer 4, private. Differentiable views of a region of a tensor, and writes to it.
#pragma once

#include <string_view>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/tensor/tensor.hpp>

#include "tensor/region.hpp"

namespace declivity::detail {

/// Part of a tensor, differentiable; it shares its memory. @param name of the function in the graph node
[[nodiscard]] Tensor part_of(const Tensor& base, const Region& region, std::string_view name = "operator[]");

/// x, which is donated, with `src` written to a region; differentiable.
/// @throws ShapeError, TypeError, DeviceError naming `name`
Tensor with_region(const char* name, Tensor x, Tensor src, const Region& region);
/// Overload for a tensor that is replaced by the result: written in place if its memory is unshared.
/// @param x used for its graph node only
/// @param elements of x; still valid after an error, otherwise those of the result
Tensor with_region(const char* name, const Tensor& x, ops::LazyArray& elements, Tensor src, const Region& region);

}  // namespace declivity::detail
