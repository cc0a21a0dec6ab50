// The gradient of a convolution's input as a matrix product of the output gradient with the unpacked weights, folded
// into x afterwards (cl_kernels/conv/conv2d_col2im.cl), simd kernels.
#include <algorithm>
#include <array>

#include <declivity/ops/matmul.hpp>

#include "conv2d_strategy.hpp"
#include "conv2d_upcast.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMaxPositions = 256, kMaxStrided = 1024, kMaxOfOne = 64,
                       kMaxImages = 4;  // above this, packing the weights pays off
constexpr std::int64_t kMinFilters = 128,
                       kMinChannels = 64;  // multiply-adds for each product that is written and read
constexpr std::int64_t kMaxTaps = 128;
constexpr std::int64_t kGroupsPerUnit = 4;  // to balance the load

/// Layout of the kernel's struct; must match cl_kernels/conv/conv2d_col2im.cl.
struct Fold {
    std::int32_t channels, each, height, width, rows, columns, stride_h, stride_w, pad_top, pad_left, dilation_h,
        dilation_w;
};

class Conv2dCol2im final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "col2im"; }

    /// Positions within an image are 32-bit numbers.
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device&) const override {
        constexpr std::int64_t limit = std::int64_t{1} << 28;
        if (problem.style != KernelStyle::simd || problem.direction != Conv2dDirection::backward_input ||
            problem.groups != 1 || problem.taps() > kMaxTaps)
            return false;
        std::int64_t extent = 1;
        for (std::size_t i = 0; i < 2; ++i)
            extent *= problem.input[i] + 2 * problem.padding[i] + problem.filter[i] * problem.dilation[i];
        return extent <= limit && problem.channels * problem.taps() <= limit &&
               problem.output[0] * problem.output[1] * problem.channels * problem.taps() <= limit * 4;
    }

    /// For few positions, reordering the weights takes longer than their product.
    [[nodiscard]] bool is_profitable(const Conv2dProblem& problem, const Device&) const override {
        // 1 x 1 filters need no folding, and packed weights are as fast from fewer positions on; but strides leave
        // limit of the gradient zero.
        const bool strided = problem.stride[0] * problem.stride[1] > 1;
        const std::int64_t max_positions = problem.taps() > 1 ? kMaxPositions : strided ? kMaxStrided : kMaxOfOne;
        return problem.images <= kMaxImages &&
               problem.images * problem.output[0] * problem.output[1] <= max_positions &&
               problem.filters >= kMinFilters && problem.channels >= kMinChannels;
    }

    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem&, const Device&, std::string_view) const override {
        return true;
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const View& g = operands.out;
        const Device device = g.device();
        const std::int64_t positions = problem.output[0] * problem.output[1], row = problem.channels * problem.taps();
        const View products = View::make(device, problem.dtype, {problem.images, positions, row});
        matmul(permuted(reshaped(g, {problem.images, problem.filters, positions}), {0, 2, 1}),
               expanded("conv2d_col2im", reshaped(operands.weight, {1, problem.filters, row}),
                        {problem.images, problem.filters, row}),
               products);
        const std::int64_t target_groups =
            ceil_div(std::int64_t{device.info().compute_units} * kGroupsPerUnit, problem.images);
        const Fold d{.channels = narrow(problem.channels),
                     .each = narrow(ceil_div(problem.channels, target_groups)),
                     .height = narrow(problem.input[0]),
                     .width = narrow(problem.input[1]),
                     .rows = narrow(problem.output[0]),
                     .columns = narrow(problem.output[1]),
                     .stride_h = narrow(problem.stride[0]),
                     .stride_w = narrow(problem.stride[1]),
                     .pad_top = narrow(problem.padding[0]),
                     .pad_left = narrow(problem.padding[1]),
                     .dilation_h = narrow(problem.dilation[0]),
                     .dilation_w = narrow(problem.dilation[1])};
        Defines defines = real_defines(problem.dtype);
        defines.set("TAPS_H", problem.filter[0])
            .set("TAPS_W", problem.filter[1])
            .set("VW", vector_form(device, problem.dtype).vector);
        set_epilogue_stored(defines, operands.epilogue);
        const Kernel kernel(device, {"conv2d_col2im.cl", "conv2d_col2im", defines});
        const EpilogueArguments epilogue_arguments(operands.epilogue, operands.weight);
        launch(
            kernel,
            {{static_cast<std::size_t>(ceil_div(problem.channels, d.each)), static_cast<std::size_t>(problem.images)},
             {1, 1}},
            epilogue_arguments.append_to_if_any({d, products.argument(), operands.x.argument()}));
    }
};

}  // namespace

const Conv2dStrategy& conv2d_col2im() {
    static const Conv2dCol2im strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::measured);
    return upcast;
}

}  // namespace declivity::ops
