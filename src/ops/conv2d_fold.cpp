// The gradient of a convolution's input as a matrix product of the gradient's positions with the weights as they lie in memory, folded into x
// afterwards (cl_kernels/conv2d_fold.cl), on CPU-like devices.
#include <algorithm>
#include <array>

#include <declivity/ops/matmul.hpp>

#include "conv2d_strategy.hpp"
#include "local_block.hpp"
#include "vector_form.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMostPositions = 256, kMostStrided = 1024, kMostOfOne = 64, kMostImages = 4;  // with more, weights are packed for many uses
constexpr std::int64_t kLeastFilters = 128, kLeastChannels = 64;  // each product is written and read once for so many multiply-adds
constexpr std::int64_t kMostTaps = 128;
constexpr std::int64_t kGroupsPerUnit = 4;                        // so that all compute units end at about the same time

/// As the struct of the kernel.
struct Fold {
    std::int32_t channels, each, height, width, rows, columns, step_h, step_w, above, left, hop_h, hop_w;
};

class Conv2dFold final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "fold"; }

    /// Positions within an image are 32-bit numbers here.
    [[nodiscard]] bool can_serve(const Conv2dProblem& problem) const override {
        constexpr std::int64_t most = std::int64_t{1} << 28;
        if (problem.family != Family::cpu_like || problem.direction != Conv2dDirection::backward_input || problem.groups != 1 || problem.taps() > kMostTaps) return false;
        std::int64_t reach = 1;
        for (std::size_t i = 0; i < 2; ++i) reach *= problem.input[i] + 2 * problem.padding[i] + problem.filter[i] * problem.dilation[i];
        return reach <= most && problem.channels * problem.taps() <= most && problem.output[0] * problem.output[1] * problem.channels * problem.taps() <= most * 4;
    }

    /// For few positions copying the weights in another order takes longer than their product.
    [[nodiscard]] bool pays(const Conv2dProblem& problem) const override {
        // With filters of one element nothing is added up afterwards, and packed weights do as well from fewer positions on; but strides
        // leave most of the gradient zero.
        const bool strided = problem.stride[0] * problem.stride[1] > 1;
        const std::int64_t most = problem.taps() > 1 ? kMostPositions : strided ? kMostStrided : kMostOfOne;
        return problem.images <= kMostImages && problem.images * problem.output[0] * problem.output[1] <= most && problem.filters >= kLeastFilters &&
               problem.channels >= kLeastChannels;
    }

    [[nodiscard]] bool takes_tail(const Conv2dProblem&, const Device&, std::string_view) const override { return true; }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const View& dout = operands.out;
        const Device device = dout.device();
        const std::int64_t positions = problem.output[0] * problem.output[1], row = problem.channels * problem.taps();
        const View products = View::make(device, problem.dtype, {problem.images, positions, row});
        matmul(permuted(reshaped(dout, {problem.images, problem.filters, positions}), {0, 2, 1}),
               expanded("conv2d_fold", reshaped(operands.weight, {1, problem.filters, row}), {problem.images, problem.filters, row}), products);
        const std::int64_t wanted = ceil_div(std::int64_t{device.info().compute_units} * kGroupsPerUnit, problem.images);
        const Fold d{.channels = narrow(problem.channels), .each = narrow(ceil_div(problem.channels, wanted)), .height = narrow(problem.input[0]), .width = narrow(problem.input[1]),
                     .rows = narrow(problem.output[0]), .columns = narrow(problem.output[1]), .step_h = narrow(problem.stride[0]), .step_w = narrow(problem.stride[1]),
                     .above = narrow(problem.padding[0]), .left = narrow(problem.padding[1]), .hop_h = narrow(problem.dilation[0]), .hop_w = narrow(problem.dilation[1])};
        Defines defines = real_defines(problem.dtype);
        defines.set("TAPS_H", problem.filter[0]).set("TAPS_W", problem.filter[1]).set("VW", vector_form(device, problem.dtype).vector);
        set_finish(defines, operands.tail);
        const Kernel kernel(device, {"conv2d_fold.cl", "conv2d_fold", defines});
        const TailArguments finish(operands.tail, operands.weight);
        launch(kernel, {{static_cast<std::size_t>(ceil_div(problem.channels, d.each)), static_cast<std::size_t>(problem.images)}, {1, 1}},
               finish.if_any_behind({d, products.argument(), operands.x.argument()}));
    }
};

}  // namespace

const Conv2dStrategy& conv2d_fold() {
    static const Conv2dFold strategy;
    return strategy;
}

}  // namespace declivity::ops
