// What strategies of products and convolutions are given to do with their results.
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

/// What a strategy is given to do with its sums: nothing; a function, or its gradient, of all that may be added. Of
/// these those that it takes.
inline std::vector<KernelEpilogue> epilogues(const View& out, EpilogueOf of, bool many) {
    std::vector<KernelEpilogue> epilogues(1);
    if (!many) return epilogues;
    const Expression dense = View::make(out.device(), out.dtype, out.shape),
                     result = Expression::operator_result(out.dtype, out.shape);
    const bool convolution = of == EpilogueOf::convolution;
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
            if (auto taken = kernel_epilogue(epilogue_of(each), out, of)) epilogues.push_back(*std::move(taken));
    }
    return epilogues;
}

/// Epilogues go with the first variant, of the largest tile, and with the last; with all others on demand.
inline bool takes_epilogues(const std::vector<std::string>& variants, const std::string& variant) {
    return all_combinations() || variant == variants.front() || variant == variants.back();
}

}  // namespace declivity::gpu_compile
