// Layer 3. Random numbers of more distributions than creation.hpp has (uniform, normal, bernoulli of one probability,
// randint, randperm), and drawing from what tensors hold.
//
// All come from Philox by seed and position (generator.hpp), on the device, without a wait: parameters that are tensors
// are not looked at on the host, and where they make no sense the numbers are NaN. What is made of uniform numbers by
// exact arithmetic (bernoulli) is the same to the bit on every device; what passes through log or exp is the same up to
// the bounds of these functions, and a choice by comparing such numbers (categorical, multinomial, poisson, gamma) may
// differ where they are closer than that. f16 and bf16 are rounded from f32. No gradient flows through a draw, but
// through gumbel_softmax.
//
// @throws for all: DeviceError where options or a tensor are of another device than the generator's; ValueError,
// TypeError, ShapeError naming the function
#pragma once

#include <cstdint>
#include <optional>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

// ---- of a shape

/// Density rate exp(-rate x), x >= 0; rate above 0.
DECLIVITY_API Tensor exponential(const Shape& shape, double rate = 1, const TensorOptions& options = {},
                                 const std::optional<Generator>& generator = std::nullopt);
/// Normally distributed where it lies in [low, high], and nowhere else; std above 0, low < high. By the inverse of the
/// distribution, which in f32 is coarse where the interval lies more than 3 std from the mean.
DECLIVITY_API Tensor truncated_normal(const Shape& shape, double mean = 0, double std = 1, double low = -2,
                                      double high = 2, const TensorOptions& options = {},
                                      const std::optional<Generator>& generator = std::nullopt);
/// exp of a normal number of this mean and std (of the logarithm, as in PyTorch).
DECLIVITY_API Tensor log_normal(const Shape& shape, double mean = 0, double std = 1, const TensorOptions& options = {},
                                const std::optional<Generator>& generator = std::nullopt);
/// Density 1 / (pi scale (1 + ((x - median) / scale)^2)); scale above 0.
DECLIVITY_API Tensor cauchy(const Shape& shape, double median = 0, double scale = 1, const TensorOptions& options = {},
                            const std::optional<Generator>& generator = std::nullopt);
/// Density exp(-|x - mean| / scale) / (2 scale); scale above 0.
DECLIVITY_API Tensor laplace(const Shape& shape, double mean = 0, double scale = 1, const TensorOptions& options = {},
                             const std::optional<Generator>& generator = std::nullopt);
/// Density exp(-(z + exp(-z))) / scale, z = (x - mode) / scale; scale above 0.
DECLIVITY_API Tensor gumbel(const Shape& shape, double mode = 0, double scale = 1, const TensorOptions& options = {},
                            const std::optional<Generator>& generator = std::nullopt);
/// How often a trial of this probability, in (0, 1], is made until it succeeds: 1, 2, ...
DECLIVITY_API Tensor geometric(const Shape& shape, double probability, const TensorOptions& options = {},
                               const std::optional<Generator>& generator = std::nullopt);

// ---- of parameters in tensors of any shape and floating type

/// 1 with the probability that the element is, otherwise 0.
DECLIVITY_API Tensor bernoulli(const Tensor& probability, const std::optional<Generator>& generator = std::nullopt);
/// Normally distributed; mean and std are broadcast.
DECLIVITY_API Tensor normal(const Tensor& mean, const Tensor& std,
                            const std::optional<Generator>& generator = std::nullopt);
inline Tensor normal(const Tensor& mean, double std, const std::optional<Generator>& generator = std::nullopt) {
    return normal(mean, full_like(mean, std), generator);
}
/// Whole numbers k with probability rate^k exp(-rate) / k!, in the type of `rate` (>= 0; Knuth; Hörmann 1993).
DECLIVITY_API Tensor poisson(const Tensor& rate, const std::optional<Generator>& generator = std::nullopt);
/// Density proportional to x^(concentration - 1) exp(-rate x); concentration >= 0, rate above 0 (Marsaglia, Tsang
/// 2000).
DECLIVITY_API Tensor gamma(const Tensor& concentration, double rate = 1,
                           const std::optional<Generator>& generator = std::nullopt);
/// Density proportional to x^(a - 1) (1 - x)^(b - 1), x in [0, 1]; a and b are broadcast.
DECLIVITY_API Tensor beta(const Tensor& a, const Tensor& b, const std::optional<Generator>& generator = std::nullopt);
/// Along the last axis numbers above 0 that add up to 1, density proportional to the product of x^(concentration - 1).
DECLIVITY_API Tensor dirichlet(const Tensor& concentration, const std::optional<Generator>& generator = std::nullopt);

// ---- choices

/// An index along the axis, i64, chosen with probability softmax(logits): that of the largest of logits + gumbel noise.
/// Without the axis; for n numbers of each row expand(unsqueeze(logits, 0), {n, ...}).
DECLIVITY_API Tensor categorical(const Tensor& logits, std::int64_t axis = -1,
                                 const std::optional<Generator>& generator = std::nullopt);
/// `count` indices, i64, chosen with probabilities proportional to weights (C) or (N, C), in the order of the draws:
/// (count) or (N, count). Without replacement none is chosen twice (by gumbel noise, Efraimidis, Spirakis 2006).
/// weights: at least 0, a row's sum above 0, and without replacement at least `count` above 0, which is not looked at:
/// otherwise indices of weight 0 are among those chosen, the last one where the sum is no number.
/// @throws ValueError for a count below 1, or without replacement above C
DECLIVITY_API Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement = false,
                                 const std::optional<Generator>& generator = std::nullopt);
/// softmax((logits + gumbel noise) / tau) along the axis, which is differentiable (Jang et al. 2017, Maddison et al.
/// 2017). hard: 1 where it is largest, otherwise 0, with the gradient of the soft values.
DECLIVITY_API Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, std::int64_t axis = -1,
                                    const std::optional<Generator>& generator = std::nullopt);

}  // namespace declivity
