// Direct convolution by its definition: applicable to every shape.
#include <algorithm>

#include "conv2d_strategy.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr double kMaxMeasured = 2e9;  // multiply-adds

/// Layout of the kernels' struct Conv2d; must match cl_kernels/conv/conv2d_direct.cl.
struct Sizes {
    std::int64_t channels, filters, group_channels, group_filters;
    std::array<std::int64_t, 2> input, filter, output, stride, padding, dilation;
    std::int64_t images, has_bias;
};

class Conv2dDirect final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "direct"; }
    [[nodiscard]] bool is_applicable(const Conv2dProblem&, const Device&) const override { return true; }
    [[nodiscard]] bool worth_measuring(const Conv2dProblem& p) const override {
        const auto each = static_cast<double>(p.channels_per_group() * p.taps());
        return static_cast<double>(p.images * p.filters * p.output[0] * p.output[1]) * each <= kMaxMeasured;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const auto& [x, weight, out, bias, epilogue, sums] = operands;
        const auto launch_for = [&](const char* kernel_name, const View& result, auto... buffers) {
            const Kernel kernel(x.device(),
                                {"conv2d_direct.cl", kernel_name, storage_defines(problem.dtype, problem.dtype)});
            const Sizes sizes{problem.channels,
                              problem.filters,
                              problem.channels_per_group(),
                              problem.filters_per_group(),
                              problem.input,
                              problem.filter,
                              problem.output,
                              problem.stride,
                              problem.padding,
                              problem.dilation,
                              problem.images,
                              bias ? 1 : 0};
            const std::size_t group = item_group(kernel);
            launch(kernel, {{round_up(static_cast<std::size_t>(result.numel()), group), 1, 1}, {group, 1, 1}},
                   {sizes, result.numel(), buffers...});
        };
        switch (problem.direction) {
            case Conv2dDirection::forward:
                launch_for("conv2d_direct_forward", out, x.argument(), weight.argument(), out.argument(),
                           (bias ? *bias : weight).argument());
                break;
            case Conv2dDirection::backward_input:
                launch_for("conv2d_direct_backward_input", x, out.argument(), weight.argument(), x.argument());
                break;
            case Conv2dDirection::backward_weights:
                launch_for("conv2d_direct_backward_weights", weight, x.argument(), out.argument(), weight.argument());
                break;
        }
    }
};

}  // namespace

const Conv2dStrategy& conv2d_direct() {
    static const Conv2dDirect strategy;
    return strategy;
}

}  // namespace declivity::ops
