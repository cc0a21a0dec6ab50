// Measures and explains the strategies of a convolution.
#include <declivity/ops/tuning.hpp>
#include <fmt/format.h>

#include "conv2d_strategy.hpp"
#include "ops/support/tuning_table.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr double kMostPlainWork = 2e9;  // multiply-adds

constexpr std::array kDirections{Conv2dDirection::forward, Conv2dDirection::backward_input,
                                 Conv2dDirection::backward_weights};
constexpr std::array kNames{"conv2d_forward", "conv2d_backward_input", "conv2d_backward_weights"};

Conv2dProblem problem_of(const Device& device, const Conv2dShape& shape, Conv2dDirection direction) {
    const Shape out = conv2d_shape("tune", shape.x, shape.weight, shape.options);
    return {.direction = direction,
            .dtype = shape.dtype,
            .family = family_of(device),
            .images = shape.x[0],
            .channels = shape.x[1],
            .filters = shape.weight[0],
            .groups = shape.options.groups,
            .input = {shape.x[2], shape.x[3]},
            .filter = {shape.weight[2], shape.weight[3]},
            .output = {out[2], out[3]},
            .stride = shape.options.stride,
            .padding = shape.options.padding,
            .dilation = shape.options.dilation};
}

std::string joined(const Conv2dStrategy& strategy, const std::string& variant) {
    return variant.empty() ? std::string(strategy.name()) : fmt::format("{} {}", strategy.name(), variant);
}

}  // namespace

std::string tuning_key(const Conv2dProblem& p) {
    return fmt::format(
        "{} {} {} N {} C {} H {} W {} K {} R {} S {} stride {},{} padding {},{} dilation {},{} groups {}",
        kNames[static_cast<std::size_t>(p.direction)], name_of(p.dtype), p.family == Family::cpu_like ? "cpu" : "gpu",
        bucket(p.images), bucket(p.channels), bucket(p.input[0]), bucket(p.input[1]), bucket(p.filters), p.filter[0],
        p.filter[1], p.stride[0], p.stride[1], p.padding[0], p.padding[1], p.dilation[0], p.dilation[1],
        bucket(p.groups));
}

TuningEntry measure_conv2d(const Device& device, const Conv2dProblem& p) {
    const Conv2dOperands operands{
        random_operand(device, p.dtype, {p.images, p.channels, p.input[0], p.input[1]}),
        random_operand(device, p.dtype, {p.filters, p.channels_per_group(), p.filter[0], p.filter[1]}),
        random_operand(device, p.dtype, {p.images, p.filters, p.output[0], p.output[1]})};
    const auto work = static_cast<double>(p.images * p.filters * p.output[0] * p.output[1]) *
                      static_cast<double>(p.channels_per_group() * p.taps());
    std::vector<Trial> trials;
    for (const Conv2dStrategy* strategy : conv2d_strategies())
        // The plain one would take minutes for large shapes; the one before it is as plain as can be then.
        if (strategy->can_serve(p) && !(strategy == &conv2d_direct() && work > kMostPlainWork && !trials.empty()))
            for (const std::string& variant : strategy->variants(device, p))
                trials.push_back({joined(*strategy, variant),
                                  [&operands, &p, strategy, variant] { strategy->run(p, operands, variant); }});
    const View& out = p.direction == Conv2dDirection::forward          ? operands.out
                      : p.direction == Conv2dDirection::backward_input ? operands.x
                                                                       : operands.weight;
    const TuningEntry entry = measure(out, trials);
    if (!entry.winner.empty()) TuningTable::of(device).put(tuning_key(p), entry);
    return entry;
}

std::string tune(const Device& device, const Conv2dShape& shape, bool again) {
    std::string text;
    for (const Conv2dDirection direction : kDirections) {
        const Conv2dProblem problem = problem_of(device, shape, direction);
        const std::string key = tuning_key(problem);
        if (problem.images == 0 || (!again && TuningTable::of(device).find(key))) continue;
        text += key + "\n" + describe(measure_conv2d(device, problem));
    }
    return text;
}

std::string explain(const Device& device, const Conv2dShape& shape) {
    std::string text;
    for (const Conv2dDirection direction : kDirections) {
        const Conv2dProblem problem = problem_of(device, shape, direction);
        const std::string key = tuning_key(problem);
        const Conv2dChoice choice = choose_conv2d(problem, device);
        text += fmt::format("{}\n  served by {}: {}\n", key, joined(*choice.strategy, choice.variant), choice.reason);
        const auto entry = TuningTable::of(device).find(key);
        if (entry) text += describe(*entry);
        for (const Conv2dStrategy* strategy : conv2d_strategies()) {
            if (!strategy->can_serve(problem)) text += fmt::format("  {:<16} cannot serve it\n", strategy->name());
            else if (!entry)
                text += fmt::format("  {:<16} can serve it{}\n", strategy->name(),
                                    strategy->pays(problem) ? "" : "; by rule of thumb it does not pay");
        }
    }
    return text;
}

}  // namespace declivity::ops
