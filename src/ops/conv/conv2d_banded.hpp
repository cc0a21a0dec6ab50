// What the parts of the convolution over bands of rows share.
#pragma once

#include <algorithm>

#include "conv2d_strategy.hpp"
#include "ops/support/local_block.hpp"

namespace declivity::ops::banded {

constexpr std::int64_t kBlockBytes = 256 * 1024;  // of local memory, that stay in the second cache
constexpr std::int64_t kGroupsPerUnit = 4;        // so that all compute units end at about the same time
constexpr std::int64_t kMinBand = 4;              // rows, for which copying the rows around them is worth while

/// Whether the device's block, and that which devices usually have, hold what a weight gradient needs of one row.
bool is_applicable_to_weights(const Conv2dProblem& problem, const Device& device);
/// Whether that is the fastest way, by measurements.
bool is_profitable_for_weights(const Conv2dProblem& problem);
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::banded
