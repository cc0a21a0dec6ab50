// Layer 3. Dropout.
#pragma once

#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Sets elements to 0 with probability p and divides the others by 1 - p (Srivastava et al. 2014).
/// @param generator where the numbers come from: the device's own without one, see Generator::rows() for a part of a
/// batch. @throws DeviceError for one of another device
DECLIVITY_API Tensor dropout(const Tensor& x, double p = 0.5, const std::optional<Generator>& generator = std::nullopt);

/// Sets whole channels to 0, those of (N, C, ...), with probability p and divides the others by 1 - p (Tompson et al.
/// 2015). dropout1d takes (N, C, L), and (C, L) without a batch; dropout2d (N, C, H, W), and (N, C, L), as in PyTorch;
/// dropout3d (N, C, D, H, W), and (C, D, H, W).
/// @throws ShapeError for other ranks
DECLIVITY_API Tensor dropout1d(const Tensor& x, double p = 0.5,
                               const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor dropout2d(const Tensor& x, double p = 0.5,
                               const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor dropout3d(const Tensor& x, double p = 0.5,
                               const std::optional<Generator>& generator = std::nullopt);

/// For networks of selu: elements are set to what selu tends to, -1.7581, with probability p, and all are scaled and
/// shifted so that mean 0 and variance 1 stay as they are (Klambauer et al. 2017).
DECLIVITY_API Tensor alpha_dropout(const Tensor& x, double p = 0.5,
                                   const std::optional<Generator>& generator = std::nullopt);
/// The same for whole channels of (N, C, ...).
DECLIVITY_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5,
                                           const std::optional<Generator>& generator = std::nullopt);

}  // namespace declivity
