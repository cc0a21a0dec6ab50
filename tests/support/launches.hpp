// Counts the kernels that a call launches.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

/// Number of launches of all kernels, or of one, during a call. Copies and fills do not count.
int launches(const std::function<void()>& call, std::string_view kernel = "");

/// Evaluates a lazy tensor.
inline void materialize(const Tensor& tensor) { (void)tensor.dense_view(); }

}  // namespace declivity::test
