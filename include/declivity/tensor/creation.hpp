// Floor 3. New tensors: constants, ranges, random numbers.
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Type and place of a new tensor.
struct TensorOptions {
    DType dtype = DType::f32;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

DECLIVITY_API Tensor full(const Shape& shape, Scalar value, const TensorOptions& options = {});
DECLIVITY_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor zeros_like(const Tensor& like);
DECLIVITY_API Tensor ones_like(const Tensor& like);
/// start, start + step, ... before `end`.
DECLIVITY_API Tensor arange(Scalar start, Scalar end, Scalar step = 1, const TensorOptions& options = {});

/// Starts the random numbers of every device anew: equal seeds give equal numbers. Random numbers come from
/// Philox4x32-10 (Salmon et al. 2011); uniform ones are equal to the bit on every device.
DECLIVITY_API void manual_seed(std::uint64_t seed);

/// Seed and position of a device's random numbers; a checkpoint keeps them.
struct RandomState {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
};
DECLIVITY_API RandomState random_state(const Device& device);
DECLIVITY_API void set_random_state(const Device& device, const RandomState& state);

/// Evenly distributed in [low, high); f16 and bf16 are rounded from f32, and so may be `high`.
DECLIVITY_API Tensor uniform(const Shape& shape, double low = 0, double high = 1, const TensorOptions& options = {});
/// Normally distributed.
DECLIVITY_API Tensor normal(const Shape& shape, double mean = 0, double std = 1, const TensorOptions& options = {});
/// uniform in [0, 1), and normal with mean 0 and standard deviation 1.
DECLIVITY_API Tensor rand(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor randn(const Shape& shape, const TensorOptions& options = {});
/// 1 with this probability, otherwise 0.
DECLIVITY_API Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options = {});

}  // namespace declivity
