// Layer 2. Random numbers of distributions whose parameter is a view.
#pragma once

#include <declivity/ops/random.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Numbers of this type that each element of `random_gamma` and `random_poisson` wants from its call.
inline constexpr std::int64_t kRandomGammaNumbers = 64, kRandomPoissonNumbers = 64;

/// out[i] = a number from the gamma distribution of shape concentration[i] >= 0 and rate 1, or its logarithm
/// (Marsaglia, Tsang 2000); NaN where the concentration is negative or NaN. Dense, f32 or f64, of one shape.
/// @param random of as many numbers of this type as kRandomGammaNumbers for each element
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void random_gamma(std::string_view function, const View& concentration, bool logarithm,
                                const RandomCall& random, const View& out);

/// out[i] = a number from the Poisson distribution of rate[i] >= 0 (Knuth; Hörmann 1993); NaN where the rate is
/// negative or NaN. Dense, f32 or f64, of one shape.
/// @param random of as many numbers of f32 (of f64 too) as kRandomPoissonNumbers for each element
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void random_poisson(std::string_view function, const View& rate, const RandomCall& random,
                                  const View& out);

}  // namespace declivity::ops
