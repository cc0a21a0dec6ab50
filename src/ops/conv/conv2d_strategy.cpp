// The strategies of convolutions: choice, measurement and explanation.
#include <array>

#include <declivity/ops/tuning.hpp>
#include <fmt/format.h>

#include "conv2d_strategy.hpp"
#include "ops/support/strategy_choice.hpp"
#include "ops/support/work_split.hpp"
#include "runtime/environment.hpp"

namespace declivity::ops {
namespace {

constexpr std::array kDirections{Conv2dDirection::forward, Conv2dDirection::backward_input,
                                 Conv2dDirection::backward_weights};
constexpr std::array kNames{"conv2d_forward", "conv2d_backward_input", "conv2d_backward_weights"};

void with_random_operands(const Device& device, const Conv2dProblem& p,
                          const StrategySet<Conv2dStrategy>::Measurement& measurement) {
    const Conv2dOperands operands{
        random_operand(device, p.dtype, {p.images, p.channels, p.input[0], p.input[1]}),
        random_operand(device, p.dtype, {p.filters, p.channels_per_group(), p.filter[0], p.filter[1]}),
        random_operand(device, p.dtype, {p.images, p.filters, p.output[0], p.output[1]})};
    measurement(operands, p.direction == Conv2dDirection::forward          ? operands.out
                          : p.direction == Conv2dDirection::backward_input ? operands.x
                                                                           : operands.weight);
}

const StrategySet<Conv2dStrategy>& strategy_set() {
    static const std::array<const Conv2dStrategy*, 12> all{&conv2d_depthwise_channels_last(),
                                                           &conv2d_depthwise(),
                                                           &conv2d_depthwise_direct(),
                                                           &conv2d_winograd4(),
                                                           &conv2d_winograd2(),
                                                           &conv2d_col2im(),
                                                           &conv2d_matmul(),
                                                           &conv2d_banded(),
                                                           &conv2d_gemm(),
                                                           &conv2d_implicit_gemm(),
                                                           &conv2d_tiled(),
                                                           &conv2d_direct()};
    static const StrategySet<Conv2dStrategy> set{
        "DECLIVITY_CONV2D", [] { return declivity::detail::environment().conv2d; }, all, with_random_operands};
    return set;
}

/// Concatenates the results of `each` for the problems of all directions.
template <class Each>
std::string in_all_directions(const Device& device, const Conv2dShape& shape, Each each) {
    std::string text;
    for (const Conv2dDirection direction : kDirections) {
        const Conv2dProblem problem = conv2d_problem("tune", direction, shape.dtype, kernel_style_of(device), shape.x,
                                                     shape.weight, shape.options);
        if (problem.images > 0) text += each(problem);
    }
    return text;
}

}  // namespace

std::span<const Conv2dStrategy* const> conv2d_strategies() { return strategy_set().strategies; }

Conv2dChoice choose_conv2d(const Conv2dProblem& problem, const Device& device) {
    return choose_strategy(strategy_set(), problem, device);
}

std::string tuning_key(const Conv2dProblem& p) {
    return fmt::format(
        "{} {} {} N {} C {} H {} W {} K {} R {} S {} stride {},{} padding {},{} dilation {},{} groups {}{}",
        kNames[static_cast<std::size_t>(p.direction)], name_of(p.dtype), p.style == KernelStyle::simd ? "simd" : "simt",
        bucket(p.images), bucket(p.channels), bucket(p.input[0]), bucket(p.input[1]), bucket(p.filters), p.filter[0],
        p.filter[1], p.stride[0], p.stride[1], p.padding[0], p.padding[1], p.dilation[0], p.dilation[1],
        bucket(p.groups), p.constant_weight ? " constant" : "");
}

std::string tune(const Device& device, const Conv2dShape& shape, bool again) {
    return in_all_directions(device, shape, [&](const Conv2dProblem& problem) {
        return tune_strategies(strategy_set(), problem, device, again);
    });
}

std::string explain(const Device& device, const Conv2dShape& shape) {
    return in_all_directions(device, shape, [&](const Conv2dProblem& problem) {
        return explain_strategies(strategy_set(), problem, device);
    });
}

}  // namespace declivity::ops
