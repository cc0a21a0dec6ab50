// Depthwise convolution (cl_kernels/conv/conv2d_depthwise_direct.cl), simt kernels.
#include <algorithm>

#include "conv2d_strategy.hpp"
#include "conv2d_upcast.hpp"
#include "conv2d_tiled.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace depthwise_direct {
namespace {

constexpr std::int64_t kMaxTaps = 49;     // each a sum of a work-item of backward_weights
constexpr std::int64_t kRowsPerItem = 4;  // ROWS_PER_ITEM

/// Layout of the kernels' struct; must match cl_kernels/conv/conv2d_depthwise_direct.cl.
struct Depthwise {
    std::int32_t channels, images, height, width, rows, columns, first_h, first_w,
        blocks = 0, each = 0, jump_n = 0, jump_p = 0, jump_q = 0, flip = 0, has_bias = 0;
};

class Conv2dDepthwiseDirect final : public Conv2dStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "depthwise_direct"; }

    /// Element indices are 32-bit numbers.
    [[nodiscard]] bool is_applicable(const Conv2dProblem& problem, const Device&) const override {
        if (problem.style != KernelStyle::simt || problem.channels_per_group() != 1 ||
            problem.filters_per_group() != 1 || problem.taps() > kMaxTaps)
            return false;
        std::int64_t limit = std::int64_t{1} << 30;
        for (std::size_t i = 0; i < 2; ++i) {
            const std::int64_t extent = std::max(problem.input[i], problem.output[i] * problem.stride[i]) +
                                        problem.padding[i] + problem.filter[i] * problem.dilation[i];
            if (extent > limit) return false;
            limit /= extent;
        }
        return problem.images <= limit && problem.channels <= limit / problem.images;
    }

    [[nodiscard]] bool fuses_epilogue(const Conv2dProblem& problem, const Device&, std::string_view) const override {
        return problem.direction == Conv2dDirection::forward || problem.stride == Pair{1, 1};
    }

    void run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view) const override {
        const auto& [x, weight, out, bias, epilogue, sums] = operands;
        switch (problem.direction) {
            case Conv2dDirection::forward:
                return forward(problem, x, weight, out, bias, problem.input, problem.output, problem.padding, false,
                               epilogue);
            case Conv2dDirection::backward_input:
                return backward_input(problem, operands);
            case Conv2dDirection::backward_weights:
                return backward_weights(problem, operands);
        }
    }

  private:
    using Pair = std::array<std::int64_t, 2>;

    static Depthwise arguments_of(const Conv2dProblem& problem, const Pair& input, const Pair& output,
                                  const Pair& padding) {
        return {.channels = narrow(problem.channels),
                .images = narrow(problem.images),
                .height = narrow(input[0]),
                .width = narrow(input[1]),
                .rows = narrow(output[0]),
                .columns = narrow(output[1]),
                .first_h = narrow(-padding[0]),
                .first_w = narrow(-padding[1])};
    }

    static Kernel kernel_of(const Conv2dProblem& problem, const Device& device, const char* name, std::int64_t stage,
                            std::int64_t rows_per_item, std::int64_t group, const KernelEpilogue& epilogue = {}) {
        Defines defines = real_defines(problem.dtype);
        set_activation(defines, epilogue);
        defines.set("STAGE", stage)
            .set("TAPS_H", problem.filter[0])
            .set("TAPS_W", problem.filter[1])
            .set("STRIDE_H", problem.stride[0])
            .set("STRIDE_W", problem.stride[1]);
        return {device,
                {"conv2d_depthwise_direct.cl", name,
                 defines.set("DILATION_H", problem.dilation[0])
                     .set("DILATION_W", problem.dilation[1])
                     .set("ROWS_PER_ITEM", rows_per_item)
                     .set("GROUP", group)}};
    }

    static Range items_of(const Kernel& kernel, std::int64_t count) {
        const std::size_t group = std::min(to_size(kSimtGroup), kernel.max_work_group());
        return {round_up(to_size(count), group), group};
    }

    /// It serves backward_input with stride 1 as well.
    static void forward(const Conv2dProblem& problem, const View& x, const View& weight, const View& out,
                        const std::optional<View>& bias, const Pair& input, const Pair& output, const Pair& padding,
                        bool flip, const KernelEpilogue& epilogue) {
        const std::int64_t rows_per_item =
            problem.dilation[0] == 1 && problem.stride[0] <= 2 ? std::min(kRowsPerItem, output[0]) : 1;
        Depthwise d = arguments_of(problem, input, output, padding);
        d.blocks = narrow(ceil_div(output[0], rows_per_item));
        d.flip = flip ? 1 : 0;
        d.has_bias = bias ? 1 : 0;
        const Kernel kernel =
            kernel_of(problem, out.device(), "conv2d_depthwise_direct", 0, rows_per_item, 1, epilogue);
        const EpilogueArguments arguments(epilogue, x);
        launch(kernel, items_of(kernel, problem.images * problem.channels * d.blocks * d.columns),
               arguments.append_to(
                   {d, x.argument(), weight.argument(), out.argument(), (bias ? *bias : weight).argument()}));
    }

    static void backward_input(const Conv2dProblem& problem, const Conv2dOperands& operands) {
        if (problem.stride == Pair{1, 1}) {
            Pair padding{};
            for (std::size_t i = 0; i < 2; ++i)
                padding[i] = (problem.filter[i] - 1) * problem.dilation[i] - problem.padding[i];
            return forward(problem, operands.out, operands.weight, operands.x, std::nullopt, problem.output,
                           problem.input, padding, true, operands.epilogue);
        }
        const Kernel kernel =
            kernel_of(problem, operands.x.device(), "conv2d_depthwise_direct_backward_input", 1, 1, 1);
        launch(kernel, items_of(kernel, operands.x.numel()),
               {arguments_of(problem, problem.input, problem.output, problem.padding), operands.out.argument(),
                operands.weight.argument(), operands.x.argument()});
    }

    static void backward_weights(const Conv2dProblem& problem, const Conv2dOperands& operands) {
        const auto& [x, weight, g, bias, epilogue, sums] = operands;
        const Device device = x.device();
        const std::int64_t group = power_of_two_up_to(
            std::min<std::int64_t>(kSimtGroup, static_cast<std::int64_t>(device.info().max_work_group)));
        const std::int64_t plane = problem.output[0] * problem.output[1],
                           target_groups = std::int64_t{device.info().compute_units} * kSimtGroupsPerUnit;
        const std::int64_t chunks =
            std::clamp<std::int64_t>(ceil_div(target_groups, problem.channels), 1,
                                     std::max<std::int64_t>(1, problem.images * plane / (group * kSimtWork)));
        Depthwise d = arguments_of(problem, problem.input, problem.output, problem.padding);
        d.each = narrow(ceil_div(problem.images, std::min(chunks, problem.images)));
        d.jump_n = narrow(group / plane);
        d.jump_p = narrow(group % plane / problem.output[1]);
        d.jump_q = narrow(group % problem.output[1]);
        const std::int64_t parts = ceil_div(problem.images, d.each);
        const View partials = parts == 1 ? reshaped(weight, {1, weight.numel()})
                                         : View::make(device, problem.dtype, {parts, weight.numel()});
        const Kernel kernel = kernel_of(problem, device, "conv2d_depthwise_direct_backward_weights", 2, 1, group);
        launch(kernel, {{to_size(group * problem.channels), to_size(parts)}, {to_size(group), 1}},
               {d, x.argument(), g.argument(), partials.argument()});
        if (parts > 1) reduce_partials(problem, operands, partials, weight);
    }
};

}  // namespace
}  // namespace depthwise_direct

const Conv2dStrategy& conv2d_depthwise_direct() {
    static const depthwise_direct::Conv2dDepthwiseDirect strategy;
    static const Conv2dUpcast upcast(strategy, Conv2dUpcast::When::profitable);
    return upcast;
}

}  // namespace declivity::ops
