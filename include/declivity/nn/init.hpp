// Layer 6. Initialisation of parameters, with the device's random generator (manual_seed) or a given one.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::nn {

/// @addtogroup nn_module
/// @{

/// fan_in and fan_out of a weight (out, in, window...).
struct Fan {
    std::int64_t in = 0, out = 0;
};
/// @throws ShapeError for fewer than two axes
DECLIVITY_API Fan fan_of(const Shape& weight);

// Each function fills the tensor in place and returns it.

/// Uniform in [low, high).
DECLIVITY_API Tensor uniform_(Tensor tensor, double low = 0, double high = 1,
                              const std::optional<Generator>& generator = std::nullopt);
/// Normal distribution of this mean and standard deviation.
DECLIVITY_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1,
                             const std::optional<Generator>& generator = std::nullopt);
/// Truncated normal distribution: values are redrawn until they are within [mean - cut * std, mean + cut * std], on the
/// host.
DECLIVITY_API Tensor truncated_normal_(Tensor tensor, double mean = 0, double std = 1, double cut = 2,
                                       const std::optional<Generator>& generator = std::nullopt);
/// Uniform in +-sqrt(6 / ((1 + a^2) fan_in)), for layers followed by relu, or by leaky relu with slope a (He et al.
/// 2015).
DECLIVITY_API Tensor kaiming_uniform_(Tensor weight, double a = 0,
                                      const std::optional<Generator>& generator = std::nullopt);
/// Normal with standard deviation sqrt(2 / ((1 + a^2) fan_in)).
DECLIVITY_API Tensor kaiming_normal_(Tensor weight, double a = 0,
                                     const std::optional<Generator>& generator = std::nullopt);
/// Uniform in +-gain sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010).
DECLIVITY_API Tensor xavier_uniform_(Tensor weight, double gain = 1,
                                     const std::optional<Generator>& generator = std::nullopt);
/// Normal with standard deviation gain sqrt(2 / (fan_in + fan_out)).
DECLIVITY_API Tensor xavier_normal_(Tensor weight, double gain = 1,
                                    const std::optional<Generator>& generator = std::nullopt);

/// @}

}  // namespace declivity::nn
