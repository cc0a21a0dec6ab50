// Floor 2, private. What Winograd's convolutions share: which problems they serve, and what they cost.
#pragma once

#include "conv2d_strategy.hpp"

namespace declivity::ops::winograd {

/// Filters of 3 x 3, neither strides, dilation nor groups.
bool can_serve(const Conv2dProblem& problem);

/// 2 or 4 (for backward_weights always 4): the tile that costs least; 0: neither pays, or DECLIVITY_WINOGRAD=0 switches them off.
std::int64_t cheapest(const Conv2dProblem& problem);

/// Pairs of filters and channels whose sums backward_weights keeps at a time.
constexpr std::int64_t kMostPairs = 4096;
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::winograd
