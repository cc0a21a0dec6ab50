// Layer 2. Random numbers of distributions whose parameter is a view.
#pragma once

#include <declivity/ops/random.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Random numbers of this type that `random_gamma` and `random_poisson` reserve per element.
inline constexpr std::int64_t kRandomGammaNumbers = 64, kRandomPoissonNumbers = 64;

/// out[i] = a sample of the gamma distribution of shape concentration[i] >= 0 and rate 1, or its logarithm (Marsaglia,
/// Tsang 2000); NaN if the concentration is negative or NaN. Dense, f32 or f64, of one shape.
/// @param random kRandomGammaNumbers numbers of this type per element
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void random_gamma(std::string_view function, const View& concentration, bool logarithm,
                                const RandomCall& random, const View& out);

/// out[i] = a sample of the Poisson distribution of rate[i] >= 0 (Knuth; Hörmann 1993); NaN if the rate is negative or
/// NaN. Dense, f32 or f64, of one shape.
/// @param random kRandomPoissonNumbers numbers of f32 per element, for f64 as well
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void random_poisson(std::string_view function, const View& rate, const RandomCall& random,
                                  const View& out);

/// @}

}  // namespace declivity::ops
