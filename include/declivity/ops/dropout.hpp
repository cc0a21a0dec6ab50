// Floor 2. Dropout.
#pragma once

#include <declivity/ops/random.hpp>

namespace declivity::ops {

/// out = 0 with this probability, otherwise x / (1 - probability). The same random call gives the same choice, so the
/// backward is this function of the gradient, and no mask is kept. Dense, f32 or f64; out may be x.
DECLIVITY_API void dropout(const View& x, const View& out, double probability, const RandomCall& random);

}  // namespace declivity::ops
