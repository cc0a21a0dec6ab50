// Epilogues of the strategies for products and convolutions.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <declivity/ops/epilogue.hpp>
#include <ops/matmul/matmul_strategies.hpp>

#include "tests/gpu_compile/collect.hpp"

namespace declivity::gpu_compile {

using namespace declivity::ops;

/// The epilogues to try: none; a function, or its gradient, with everything that may be added. Returns those that the
/// strategy supports.
inline std::vector<KernelEpilogue> epilogues(const View& out, EpilogueTarget target, bool many) {
    std::vector<KernelEpilogue> epilogues(1);
    if (!many) return epilogues;
    const Expression dense = View::make(out.device(), out.dtype, out.shape),
                     result = Expression::operator_result(out.dtype, out.shape);
    const bool convolution = target == EpilogueTarget::convolution;
    const View numbers =
        View::make(out.device(), out.dtype, convolution ? Shape{out.shape[1], 1, 1} : Shape{out.shape.back()});
    const auto apply = [](Function function, const std::vector<Expression>& inputs,
                          const std::vector<Scalar>& parameters = {}) {
        return Expression::apply(function, inputs, parameters);
    };
    const Expression scaled =
        convolution ? apply(Function::mul, {result, numbers}) : apply(Function::mul_scalar, {result}, {0.5});
    const Expression sum = apply(Function::add, {apply(Function::add, {scaled, numbers}), dense});
    for (const Function function : {Function::relu, Function::leaky_relu, Function::gelu, Function::tanh}) {
        const std::vector<Scalar> parameters(static_cast<std::size_t>(info(function).parameters), 0.1);
        for (const Expression& each : {apply(function, {sum}, parameters),
                                       Expression::gradient(function, 0, result, std::array{dense}, dense, parameters)})
            if (auto taken = kernel_epilogue(epilogue_of(each), out, target)) epilogues.push_back(*std::move(taken));
    }
    return epilogues;
}

/// Epilogues are combined with the first variant, of the largest tile, and the last; with --all also with all others.
inline bool takes_epilogues(const std::vector<std::string>& variants, const std::string& variant) {
    return all_combinations() || variant == variants.front() || variant == variants.back();
}

}  // namespace declivity::gpu_compile
