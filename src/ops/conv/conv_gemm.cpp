#include "conv_gemm.hpp"

#include <algorithm>

namespace declivity::ops {
namespace {

ConvGemm forward(const Conv2dProblem& problem) {
    ConvGemm gemm{.axes = {},
                  .channels = problem.channels_per_group(),
                  .filters = problem.filters_per_group(),
                  .input = problem.input,
                  .out_first = 0,
                  .out_row_step = problem.output[1],
                  .out_column_step = 1};
    for (std::size_t i = 0; i < 2; ++i)
        gemm.axes[i] = {.size = problem.output[i],
                        .step = problem.stride[i],
                        .first = -problem.padding[i],
                        .dilation = problem.dilation[i],
                        .taps = problem.filter[i]};
    return gemm;
}

/// backward_input: h = p * stride + r * dilation - padding. Positions h = stride * i + phase of x use the filter
/// elements r for which stride divides phase + padding - r * dilation; p is then i plus that quotient.
std::vector<ConvAxis> phases_of(const Conv2dProblem& problem, std::size_t axis) {
    const std::int64_t stride = problem.stride[axis];
    std::vector<ConvAxis> phases;
    for (std::int64_t phase = 0; phase < std::min(stride, problem.input[axis]); ++phase) {
        ConvAxis phase_axis{.size = ceil_div(problem.input[axis] - phase, stride)};
        for (std::int64_t r = 0; r < problem.filter[axis]; ++r) {
            const std::int64_t distance = phase + problem.padding[axis] - r * problem.dilation[axis];
            if (distance % stride != 0) continue;
            if (phase_axis.taps == 0) phase_axis.filter_first = r, phase_axis.first = distance / stride;
            else if (phase_axis.taps == 1)
                phase_axis.filter_step = r - phase_axis.filter_first,
                phase_axis.dilation = distance / stride - phase_axis.first;
            ++phase_axis.taps;
        }
        phases.push_back(phase_axis);
    }
    return phases;
}

std::vector<ConvGemm> backward_input(const Conv2dProblem& problem) {
    const std::array phases{phases_of(problem, 0), phases_of(problem, 1)};
    std::vector<ConvGemm> gemms;
    for (std::size_t i = 0; i < phases[0].size(); ++i)
        for (std::size_t j = 0; j < phases[1].size(); ++j) {
            ConvGemm gemm{.axes = {phases[0][i], phases[1][j]},
                          .channels = problem.filters_per_group(),
                          .filters = problem.channels_per_group(),
                          .input = problem.output,
                          .out_first = static_cast<std::int64_t>(i) * problem.input[1] + static_cast<std::int64_t>(j),
                          .out_row_step = problem.stride[0] * problem.input[1],
                          .out_column_step = problem.stride[1]};
            if (gemm.taps() == 0) {
                gemm.channels = 0;
                for (ConvAxis& axis : gemm.axes) axis.taps = 1;
            }
            gemms.push_back(gemm);
        }
    return gemms;
}

void flatten(ConvGemm& gemm) {
    auto& [vertical, horizontal] = gemm.axes;
    if (vertical.step != 1 || horizontal.step != 1 || vertical.first != 0 || horizontal.first != 0 ||
        gemm.out_column_step != 1)
        return;
    if (gemm.input[0] != vertical.size || gemm.input[1] != horizontal.size) return;
    horizontal.size *= vertical.size;
    vertical.size = 1;
    gemm.input = {1, horizontal.size};
    gemm.out_row_step = horizontal.size;
}

}  // namespace

std::vector<ConvGemm> conv_gemms(const Conv2dProblem& problem) {
    std::vector<ConvGemm> gemms =
        problem.direction == Conv2dDirection::forward ? std::vector{forward(problem)} : backward_input(problem);
    if (problem.taps() == 1)
        for (ConvGemm& gemm : gemms) flatten(gemm);
    return gemms;
}

}  // namespace declivity::ops
