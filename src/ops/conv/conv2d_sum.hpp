// Declarations shared by the convolutions as matrix products: forward and backward_input as sums of one form.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "conv2d_strategy.hpp"
#include "ops/support/local_block.hpp"

namespace declivity::ops {

/// Positions and taps along an axis: position p and tap i use input element p * step + first + i * dilation and filter
/// element at + i * by.
struct Conv2dAxis {
    std::int64_t size = 0, step = 1, first = 0, dilation = 1, taps = 0, at = 0, by = 1;
};

/// The sum of a launch, over the channels of a group and the taps.
struct Conv2dSum {
    std::array<Conv2dAxis, 2> axes;
    std::int64_t channels, filters;     // of a group
    std::array<std::int64_t, 2> input;  // height and width of the operand that is read
    std::int64_t out_first, out_row_step, out_column_step;
    [[nodiscard]] std::int64_t taps() const { return axes[0].taps * axes[1].taps; }
};

/// Returns one sum for forward, one for each phase of positions for backward_input. An empty sum has no channels, and
/// one tap. If windows are single consecutive elements, an image is treated as one row.
std::vector<Conv2dSum> conv2d_sums(const Conv2dProblem& problem);

/// Calls launch(sum, operand read, operand written, bias) for each sum of forward or backward_input.
template <class Launch>
void for_each_sum(const Conv2dProblem& problem, const Conv2dOperands& operands, Launch launch) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const std::optional<View> none;
    for (const Conv2dSum& sum : conv2d_sums(problem))
        launch(sum, forward ? operands.x : operands.out, forward ? operands.out : operands.x,
               forward ? operands.bias : none);
}

/// The common members of the kernels' structs: layouts of x and out, and the terms of the sum.
template <class Conv>
Conv sum_arguments(const Conv2dSum& sum, const Conv2dProblem& problem, const View& x, const View& out) {
    const auto& [vertical, horizontal] = sum.axes;
    Conv d{};
    d.x_image = x.shape[1] * x.shape[2] * x.shape[3];
    d.x_channel = x.shape[2] * x.shape[3];
    d.out_image = out.shape[1] * out.shape[2] * out.shape[3];
    d.out_channel = out.shape[2] * out.shape[3];
    d.out_first = sum.out_first;
    d.positions = static_cast<decltype(d.positions)>(problem.images * vertical.size * horizontal.size);
    d.channels = narrow(sum.channels);
    d.filters = narrow(sum.filters);
    d.height = narrow(sum.input[0]);
    d.width = narrow(sum.input[1]);
    d.rows = narrow(vertical.size);
    d.columns = narrow(horizontal.size);
    d.stride_h = narrow(vertical.step);
    d.stride_w = narrow(horizontal.step);
    d.first_h = narrow(vertical.first);
    d.first_w = narrow(horizontal.first);
    d.dilation_h = narrow(vertical.dilation);
    d.dilation_w = narrow(horizontal.dilation);
    d.taps_h = narrow(vertical.taps);
    d.taps_w = narrow(horizontal.taps);
    d.out_row_step = narrow(sum.out_row_step);
    d.out_column_step = narrow(sum.out_column_step);
    return d;
}

}  // namespace declivity::ops
