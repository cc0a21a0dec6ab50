// Layer 4, private. Functions whose result is a view of their input.
#pragma once

#include <string_view>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Result that shares the memory of x, now or once computed.
Tensor alias(std::string_view name, const Tensor& x, const ops::LazyArray& result, GradientRule rule);

}  // namespace declivity::detail
