// Declarations shared by the parts of the convolution over bands of rows.
#pragma once

#include <algorithm>

#include "conv2d_strategy.hpp"
#include "ops/support/local_block.hpp"

namespace declivity::ops::banded {

constexpr std::int64_t kBlockBytes = 256 * 1024;  // of local memory, to stay in the L2 cache
constexpr std::int64_t kGroupsPerUnit = 4;        // to balance the load
constexpr std::int64_t kMinBand = 4;              // rows of a band that amortise copying the rows around it

/// Returns whether one row of a weight gradient fits the local memory of the device, and that of usual devices.
bool is_applicable_to_weights(const Conv2dProblem& problem, const Device& device);
/// Returns whether it is the fastest strategy, by measurements.
bool is_profitable_for_weights(const Conv2dProblem& problem);
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::banded
