#include "conv2d_upcast.hpp"

#include <algorithm>
#include <utility>

#include "ops/engine/reduced_precision.hpp"

namespace declivity::ops {
namespace {

KernelEpilogue upcast(KernelEpilogue epilogue) {
    for (auto* view : {&epilogue.scale, &epilogue.shift, &epilogue.residual, &epilogue.saved})
        if (*view) *view = upcast(**view);
    return epilogue;
}

/// The operand upcast to f32, or an f32 buffer if it is written.
View copy_of(const View& operand, bool written) {
    return written ? View::make(operand.device(), compute_type(operand.dtype), operand.shape) : upcast(operand);
}

}  // namespace

Conv2dProblem Conv2dUpcast::upcast_problem(const Conv2dProblem& problem) {
    if (!is_16bit_float(problem.dtype)) return problem;
    Conv2dProblem in_f32 = problem.with_constants(false);
    in_f32.dtype = compute_type(problem.dtype);
    return in_f32;
}

void Conv2dUpcast::run(const Conv2dProblem& problem, const Conv2dOperands& operands, std::string_view variant) const {
    if (!is_16bit_float(problem.dtype)) return of_.run(problem, operands, variant);
    const Conv2dDirection direction = problem.direction;
    const bool to_weights = direction == Conv2dDirection::backward_weights;
    std::vector<SplitKPartial> sums;
    Conv2dOperands upcast_operands{copy_of(operands.x, direction == Conv2dDirection::backward_input),
                                   copy_of(operands.weight, to_weights),
                                   copy_of(operands.out, direction == Conv2dDirection::forward)};
    if (operands.bias) upcast_operands.bias = copy_of(*operands.bias, to_weights);
    upcast_operands.epilogue = upcast(operands.epilogue);
    upcast_operands.sums = &sums;
    of_.run(upcast_problem(problem), upcast_operands, variant);
    const auto round = [&](const View& exact, const View& result) {
        const auto sum =
            std::ranges::find(sums, exact.buffer, [](const SplitKPartial& partial) { return partial.result.buffer; });
        if (sum != sums.end()) reduce_partials(problem, operands, sum->partials, result);
        else evaluate(Expression::cast(exact, result.dtype), result);
    };
    if (direction == Conv2dDirection::forward) round(upcast_operands.out, operands.out);
    else if (!to_weights) round(upcast_operands.x, operands.x);
    else round(upcast_operands.weight, operands.weight);
    if (to_weights && operands.bias) round(*upcast_operands.bias, *operands.bias);
}

}  // namespace declivity::ops
