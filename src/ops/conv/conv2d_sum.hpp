// What the convolutions as matrix products share: forward and backward_input as sums of one form.
#pragma once

#include <array>
#include <vector>

#include "conv2d_strategy.hpp"

namespace declivity::ops {

/// Positions along an axis, the elements of the filter that meet them, and where: position p and tap i meet input
/// element p * step + first + i * dilation, and element at + i * by of the filter.
struct Conv2dAxis {
    std::int64_t size = 0, step = 1, first = 0, dilation = 1, taps = 0, at = 0, by = 1;
};

/// The sum that a launch computes, over the channels of a group and the taps.
struct Conv2dSum {
    std::array<Conv2dAxis, 2> axes;
    std::int64_t channels, filters;     // of a group
    std::array<std::int64_t, 2> input;  // height and width of what is read
    std::int64_t out_first, out_row_step, out_column_step;
    [[nodiscard]] std::int64_t taps() const { return axes[0].taps * axes[1].taps; }
};

/// One for forward, one for each phase of positions for backward_input. An empty sum has no channels, and one tap.
/// Where windows are single elements that follow one another, an image is one row.
std::vector<Conv2dSum> conv2d_sums(const Conv2dProblem& problem);

}  // namespace declivity::ops
