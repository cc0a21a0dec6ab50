// What the parts of the convolution over bands of rows share.
#pragma once

#include <algorithm>

#include "conv2d_strategy.hpp"

namespace declivity::ops::banded {

constexpr std::int64_t kBlockBytes = 256 * 1024;  // of local memory, that stay in the second cache
constexpr std::int64_t kGroupsPerUnit = 4;        // so that all compute units end at about the same time
constexpr std::int64_t kLeastBand = 4;            // rows, for which copying the rows around them is worth while

inline std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// Elements of local memory that a work-group may take.
inline std::int64_t block_of(const Device& device, DType dtype) {
    return std::min<std::int64_t>(kBlockBytes, static_cast<std::int64_t>(device.info().local_memory) - 1024) / static_cast<std::int64_t>(size_of(dtype));
}

/// Whether the block that a device usually has holds what a weight gradient needs of one row.
bool can_serve_weights(const Conv2dProblem& problem);
/// Whether that is the fastest way, by measurements.
bool pays_for_weights(const Conv2dProblem& problem);
void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands);

}  // namespace declivity::ops::banded
