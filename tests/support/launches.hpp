// How many kernels a call launches.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity::test {

/// Launches of all kernels, or of one, during a call. Copies and fills are not counted.
int launches(const std::function<void()>& call, std::string_view kernel = "");

/// Computes what waits, as whatever needs elements does.
inline void need(const Tensor& tensor) { (void)tensor.dense_view(); }

}  // namespace declivity::test
