// Layer 2, private. Convolutions as matrix products: forward and backward_input in one form.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "conv2d_strategy.hpp"
#include "ops/support/local_block.hpp"

namespace declivity::ops {

/// Positions and taps along an axis: position p and tap i use input element p * step + first + i * dilation and filter
/// element filter_first + i * filter_step.
struct ConvAxis {
    std::int64_t size = 0, step = 1, first = 0, dilation = 1, taps = 0, filter_first = 0, filter_step = 1;
};

/// The matrix product of a launch: sums over the channels of a group and the taps.
struct ConvGemm {
    std::array<ConvAxis, 2> axes;
    std::int64_t channels, filters;     // of a group
    std::array<std::int64_t, 2> input;  // height and width of the operand that is read
    std::int64_t out_first, out_row_step, out_column_step;
    [[nodiscard]] std::int64_t taps() const { return axes[0].taps * axes[1].taps; }
};

/// Returns one product for forward, one for each phase of positions for backward_input. An empty one has no channels,
/// and one tap. If windows are single consecutive elements, an image is treated as one row.
std::vector<ConvGemm> conv_gemms(const Conv2dProblem& problem);

/// Calls launch(product, operand read, operand written, bias) for each product of forward or backward_input.
template <class Launch>
void for_each_gemm(const Conv2dProblem& problem, const Conv2dOperands& operands, Launch launch) {
    const bool forward = problem.direction == Conv2dDirection::forward;
    const std::optional<View> none;
    for (const ConvGemm& gemm : conv_gemms(problem))
        launch(gemm, forward ? operands.x : operands.out, forward ? operands.out : operands.x,
               forward ? operands.bias : none);
}

/// The common members of the kernels' structs: layouts of x and out, and the terms of the sums.
template <class Conv>
Conv gemm_arguments(const ConvGemm& gemm, const Conv2dProblem& problem, const View& x, const View& out) {
    const auto& [vertical, horizontal] = gemm.axes;
    Conv d{};
    d.x_image = x.shape[1] * x.shape[2] * x.shape[3];
    d.x_channel = x.shape[2] * x.shape[3];
    d.out_image = out.shape[1] * out.shape[2] * out.shape[3];
    d.out_channel = out.shape[2] * out.shape[3];
    d.out_first = gemm.out_first;
    d.positions = static_cast<decltype(d.positions)>(problem.images * vertical.size * horizontal.size);
    d.channels = narrow(gemm.channels);
    d.filters = narrow(gemm.filters);
    d.height = narrow(gemm.input[0]);
    d.width = narrow(gemm.input[1]);
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
    d.out_row_step = narrow(gemm.out_row_step);
    d.out_column_step = narrow(gemm.out_column_step);
    return d;
}

}  // namespace declivity::ops
