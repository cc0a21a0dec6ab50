// Layer 5. Dropout.
#pragma once

#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_dropout Dropout
/// @ingroup functions
/// Random zeros in x of a floating type; the result has the shape and type of x. The functions always drop: they have
/// no evaluation mode, which modules have. Random numbers are those of `generator`, or of the default one of the
/// device.
///
/// Errors: ValueError for a p outside of [0, 1]; TypeError for integers and bool; DeviceError for a generator of
/// another device.
/// @{

/// Sets elements to 0 with probability p and divides the others by 1 - p (Srivastava et al. 2014).
/// Examples: for x = `[1, 2]`, `dropout(x, 0)` is `[1, 2]`; `dropout(x, 1)` is `[0, 0]`;
/// `max(dropout(ones({1000}), 0.75))` is `4` (1 / 0.25).
/// @param generator the device's default one if none; see Generator::rows() for a part of a batch. @throws DeviceError
/// if it is of another device
DECLIVITY_API Tensor dropout(const Tensor& x, double p = 0.5, const std::optional<Generator>& generator = std::nullopt);

/// Sets whole channels of x (N, C, L) or (C, L) to 0 with probability p and divides the others by 1 - p (Tompson et al.
/// 2015).
/// Example: for x = `ones({2, 3, 4})`, `count_nonzero(dropout1d(x), 2) % 4` is `[[0, 0, 0], [0, 0, 0]]` (whole
/// channels).
/// @throws ShapeError for other ranks
DECLIVITY_API Tensor dropout1d(const Tensor& x, double p = 0.5,
                               const std::optional<Generator>& generator = std::nullopt);
/// dropout1d() of images (N, C, H, W), and of (N, C, L), as in PyTorch.
/// Example: for x = `ones({2, 3, 4, 5})`, `count_nonzero(dropout2d(x), {2, 3}) % 20` is `[[0, 0, 0], [0, 0, 0]]` (whole
/// channels).
/// @throws ShapeError for other ranks
DECLIVITY_API Tensor dropout2d(const Tensor& x, double p = 0.5,
                               const std::optional<Generator>& generator = std::nullopt);
/// dropout1d() of volumes (N, C, D, H, W) or (C, D, H, W).
/// Example: for x = `ones({2, 3, 4, 5, 6})`, `dropout3d(x, 1).shape()` is `[2, 3, 4, 5, 6]`.
/// @throws ShapeError for other ranks
DECLIVITY_API Tensor dropout3d(const Tensor& x, double p = 0.5,
                               const std::optional<Generator>& generator = std::nullopt);

/// Dropout for networks with selu: sets elements to the negative saturation value of selu, -1.7581, with probability p,
/// and scales and shifts all so that mean 0 and variance 1 are preserved (Klambauer et al. 2017).
/// Example: for x = `[1, 2]`, `alpha_dropout(x, 0)` is `[1, 2]`.
DECLIVITY_API Tensor alpha_dropout(const Tensor& x, double p = 0.5,
                                   const std::optional<Generator>& generator = std::nullopt);
/// alpha_dropout of whole channels of (N, C, ...).
/// Example: for x = `[[[1, 2], [3, 4]]]`, `feature_alpha_dropout(x, 0)` is `[[[1, 2], [3, 4]]]`.
DECLIVITY_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5,
                                           const std::optional<Generator>& generator = std::nullopt);

/// @}

}  // namespace declivity
