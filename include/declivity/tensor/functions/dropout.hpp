// Floor 3. Dropout.
#pragma once

#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Sets elements to 0 with probability p and divides the others by 1 - p (Srivastava et al. 2014).
/// @param generator where the numbers come from: the device's own without one, see Generator::rows() for a part of a
/// batch. @throws DeviceError for one of another device
DECLIVITY_API Tensor dropout(const Tensor& x, double p = 0.5, const std::optional<Generator>& generator = std::nullopt);

}  // namespace declivity
