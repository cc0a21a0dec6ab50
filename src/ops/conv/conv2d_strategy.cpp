// The strategies of convolutions: choice, measurement and explanation.
#include <array>

#include <declivity/ops/tuning.hpp>

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
#define CONV2D_STRATEGY(name) &conv2d_##name(),
    static const std::array all{
#include "conv2d_strategies.def"
    };
#undef CONV2D_STRATEGY
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

std::string tuning_key(const Conv2dProblem& problem) {
    return key_of_fields(kNames[static_cast<std::size_t>(problem.direction)], problem);
}

std::string tune(const Device& device, const Conv2dShape& shape, bool remeasure) {
    return in_all_directions(device, shape, [&](const Conv2dProblem& problem) {
        return tune_strategies(strategy_set(), problem, device, remeasure);
    });
}

std::string explain(const Device& device, const Conv2dShape& shape) {
    return in_all_directions(device, shape, [&](const Conv2dProblem& problem) {
        return explain_strategies(strategy_set(), problem, device);
    });
}

}  // namespace declivity::ops
