// Checks the operands of a convolution, chooses a strategy and runs it.
#include <declivity/ops/conv2d.hpp>

#include <algorithm>
#include <array>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "conv2d_strategy.hpp"
#include "conv_shape.hpp"
#include "ops/engine/packed_weights.hpp"
#include "runtime/environment.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"
#include "ops/engine/lazy_array.hpp"

namespace declivity::ops {
namespace {

/// Checks the type and layout of an operand. @param like another operand, named `like_name`
void require_operand(std::string_view function, std::string_view name, const View& operand, std::string_view like_name,
                     const View& like) {
    require_alike(function, like_name, like, name, operand);
    require_dense(function, name, operand);
}

// A problem is checked where it is made, by one of the following; launches use it as it is.

Conv2dProblem forward_problem(std::string_view function, const View& x, const View& weight,
                              const std::optional<View>& bias, const Conv2dParameters& options, OperandUse weights) {
    require_real(function, "x", x.dtype);
    require_dense(function, "x", x);
    require_operand(function, "weight", weight, "x", x);
    Conv2dProblem problem = conv2d_problem(function, Conv2dDirection::forward, x.dtype, kernel_style_of(x.device()),
                                           x.shape, weight.shape, options);
    if (bias) {
        require_operand(function, "bias", *bias, "x", x);
        require_shape(function, "bias", *bias, {problem.filters});
    }
    problem.constant_weight = weights == OperandUse::constant;
    return problem;
}

Conv2dProblem backward_input_problem(std::string_view function, const View& out_gradient, const View& weight,
                                     const Shape& x, const Conv2dParameters& options) {
    require_real(function, "out_gradient", out_gradient.dtype);
    require_dense(function, "out_gradient", out_gradient);
    require_operand(function, "weight", weight, "out_gradient", out_gradient);
    const Conv2dProblem problem = conv2d_problem(function, Conv2dDirection::backward_input, weight.dtype,
                                                 kernel_style_of(weight.device()), x, weight.shape, options);
    require_shape(function, "out_gradient", out_gradient, problem.output_shape());
    return problem;
}

Conv2dProblem backward_weights_problem(std::string_view function, const View& x, const View& out_gradient,
                                       const View& weight_gradient, const std::optional<View>& bias_gradient,
                                       const Conv2dParameters& options) {
    require_real(function, "x", x.dtype);
    require_dense(function, "x", x);
    require_operand(function, "out_gradient", out_gradient, "x", x);
    require_operand(function, "weight_gradient", weight_gradient, "x", x);
    const Conv2dProblem problem = conv2d_problem(function, Conv2dDirection::backward_weights, x.dtype,
                                                 kernel_style_of(x.device()), x.shape, weight_gradient.shape, options);
    require_shape(function, "out_gradient", out_gradient, problem.output_shape());
    if (bias_gradient) {
        require_operand(function, "bias_gradient", *bias_gradient, "x", x);
        require_shape(function, "bias_gradient", *bias_gradient, {problem.filters});
    }
    return problem;
}

}  // namespace

void reduce_partials(const Conv2dProblem& problem, const Conv2dOperands& operands, const View& partials,
                     const View& result) {
    if (operands.sums != nullptr) operands.sums->push_back({partials, result});
    else reduce_partials(std::array{SplitKPartial{partials, result}}, problem.style);
}

namespace {

/// Multiply-adds of the definition, whatever the strategy computes.
Work work_of(const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const double each = 2.0 * static_cast<double>(problem.channels_per_group() * problem.taps());
    Work work = work_each(each, operands.out, operands.x, operands.weight);
    if (operands.bias) work.bytes += bytes_of(*operands.bias);
    return work;
}

std::string_view name_of(Conv2dDirection direction) {
    return direction == Conv2dDirection::forward          ? "conv2d"
           : direction == Conv2dDirection::backward_input ? "conv2d_backward_input"
                                                          : "conv2d_backward_weights";
}

void run_strategy(const Conv2dChoice& choice, const Conv2dProblem& problem, const Conv2dOperands& operands) {
    const WorkScope work(name_of(problem.direction), work_of(problem, operands));
    choice.strategy->run(problem, operands, choice.variant);
}

/// @param result the operand that is written
EpilogueFused run(const Conv2dProblem& problem, Conv2dOperands operands, const View& result, const Epilogue& epilogue) {
    if (problem.images == 0) return EpilogueFused::yes;
    const Device device = result.device();
    const auto of_kernel = epilogue ? kernel_epilogue(epilogue, result, EpilogueTarget::convolution) : std::nullopt;
    return with_packed_weights(problem, problem.constant_weight, operands.weight, device, choose_conv2d,
                               [&](const Conv2dProblem& served, const Conv2dChoice& choice) {
                                   const bool within =
                                       of_kernel && choice.strategy->fuses_epilogue(served, device, choice.variant);
                                   operands.epilogue = within ? *of_kernel : KernelEpilogue();
                                   run_strategy(choice, served, operands);
                                   return EpilogueFused{within};
                               });
}

EpilogueFused run_forward(const Conv2dProblem& problem, const View& x, const View& weight,
                          const std::optional<View>& bias, const View& out, const Epilogue& epilogue) {
    return run(problem, {x, weight, out, bias}, out, epilogue);
}

EpilogueFused run_backward_input(const Conv2dProblem& problem, const View& out_gradient, const View& weight,
                                 const View& x_gradient, const Epilogue& epilogue) {
    return run(problem, {x_gradient, weight, out_gradient}, x_gradient, epilogue);
}

}  // namespace

Conv2dProblem conv2d_problem(std::string_view function, Conv2dDirection direction, DType dtype, KernelStyle style,
                             const Shape& x, const Shape& weight, const Conv2dParameters& options) {
    const Shape out = conv2d_shape(function, x, weight, options);
    return {.direction = direction,
            .dtype = dtype,
            .style = style,
            .images = x[0],
            .channels = x[1],
            .filters = weight[0],
            .groups = options.groups,
            .input = {x[2], x[3]},
            .filter = {weight[2], weight[3]},
            .output = {out[2], out[3]},
            .stride = options.stride,
            .padding = options.padding,
            .dilation = options.dilation,
            .winograd = declivity::detail::environment().winograd.get()};
}

Shape conv2d_shape(std::string_view function, const Shape& x, const Shape& weight, const Conv2dParameters& options) {
    return conv_shape(function, x, weight, {options.stride, options.padding, options.dilation, options.groups});
}

void conv2d_forward(const View& x, const View& weight, const std::optional<View>& bias, const View& out,
                    const Conv2dParameters& options, const Epilogue& epilogue, OperandUse weights) {
    constexpr std::string_view function = "conv2d_forward";
    const Conv2dProblem problem = forward_problem(function, x, weight, bias, options, weights);
    require_operand(function, "out", out, "x", x);
    require_shape(function, "out", out, problem.output_shape());
    if (run_forward(problem, x, weight, bias, out, epilogue) == EpilogueFused::no) apply_epilogue(epilogue, out);
}

LazyArray conv2d(const View& x, const View& weight, const std::optional<View>& bias, const Conv2dParameters& options,
                 OperandUse weights) {
    const Conv2dProblem problem = forward_problem("conv2d", x, weight, bias, options, weights);
    return operation("conv2d",
                     [](const OperationViews& views, const Conv2dProblem& checked) {
                         const View& bias_view = views.in(2);
                         return run_forward(checked, views.in(0), views.in(1),
                                            bias_view.buffer ? std::optional(bias_view) : std::nullopt, views.out(0),
                                            views.epilogue());
                     },
                     problem,
                     {.reads = {x, weight, bias.value_or(View())}, .outputs = {{x.dtype, problem.output_shape()}}})[0];
}

LazyArray conv2d_input_gradient(const View& out_gradient, const View& weight, const Shape& x,
                                const Conv2dParameters& options) {
    constexpr std::string_view function = "conv2d_backward_input";
    const Conv2dProblem problem = backward_input_problem(function, out_gradient, weight, x, options);
    return operation(function,
                     [](const OperationViews& views, const Conv2dProblem& checked) {
                         return run_backward_input(checked, views.in(0), views.in(1), views.out(0), views.epilogue());
                     },
                     problem, {.reads = {out_gradient, weight}, .outputs = {{weight.dtype, x}}})[0];
}

void conv2d_backward_input(const View& out_gradient, const View& weight, const View& x_gradient,
                           const Conv2dParameters& options, const Epilogue& epilogue) {
    constexpr std::string_view function = "conv2d_backward_input";
    const Conv2dProblem problem = backward_input_problem(function, out_gradient, weight, x_gradient.shape, options);
    require_operand(function, "x_gradient", x_gradient, "out_gradient", out_gradient);
    if (run_backward_input(problem, out_gradient, weight, x_gradient, epilogue) == EpilogueFused::no)
        apply_epilogue(epilogue, x_gradient);
}

namespace {

/// Appends unreduced partial results to `sums` if it is non-null.
void backward_weights(const View& x, const View& out_gradient, const View& weight_gradient,
                      const Conv2dParameters& options, const std::optional<View>& bias_gradient,
                      std::vector<SplitKPartial>* sums) {
    const Conv2dProblem problem =
        backward_weights_problem("conv2d_backward_weights", x, out_gradient, weight_gradient, bias_gradient, options);
    Conv2dOperands operands{
        .x = x, .weight = weight_gradient, .out = out_gradient, .bias = bias_gradient, .sums = sums};
    if (problem.images == 0) {
        fill(weight_gradient, 0);
        if (bias_gradient) fill(*bias_gradient, 0);
        return;
    }
    const Conv2dChoice choice = choose_conv2d(problem, x.device());
    const bool separate_bias = bias_gradient && !choice.strategy->gives_bias_gradient();
    if (separate_bias) operands.bias.reset();
    run_strategy(choice, problem, operands);
    if (separate_bias) conv2d_backward_bias(out_gradient, *bias_gradient);
}

}  // namespace

void conv2d_backward_weights(const View& x, const View& out_gradient, const View& weight_gradient,
                             const Conv2dParameters& options, const std::optional<View>& bias_gradient) {
    backward_weights(x, out_gradient, weight_gradient, options, bias_gradient, nullptr);
}

Conv2dGradients conv2d_weight_gradients(const View& x, const View& out_gradient, const Shape& weight,
                                        const Conv2dParameters& options, bool with_bias) {
    const View for_weight = View::make(x.device(), x.dtype, weight);
    const std::optional<View> for_bias =
        with_bias ? std::optional(View::make(x.device(), x.dtype, {weight[0]})) : std::nullopt;
    std::vector<SplitKPartial> sums;
    backward_weights(x, out_gradient, for_weight, options, for_bias, fuses() ? &sums : nullptr);
    const auto value = [&](const View& gradient) {
        const auto sum = std::ranges::find(sums, gradient.buffer,
                                           [](const SplitKPartial& partial) { return partial.result.buffer; });
        return sum == sums.end() ? LazyArray(gradient)
                                 : lazy_reduce_partials(sum->partials, gradient.shape, gradient.dtype);
    };
    return {value(for_weight), for_bias ? value(*for_bias) : LazyArray()};
}

}  // namespace declivity::ops
