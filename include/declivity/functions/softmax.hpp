// Layer 5. Softmax and log-softmax.
#pragma once

#include <cstdint>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

DECLIVITY_API Tensor softmax(Tensor x, std::int64_t axis = -1);
DECLIVITY_API Tensor log_softmax(Tensor x, std::int64_t axis = -1);
/// softmax(-x).
DECLIVITY_API Tensor softmin(const Tensor& x, std::int64_t axis = -1);

}  // namespace declivity
