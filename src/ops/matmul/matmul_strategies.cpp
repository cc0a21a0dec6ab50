// The strategies of matrix products: choice, measurement and explanation.
#include <array>

#include <declivity/ops/tuning.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"
#include "ops/support/strategy_choice.hpp"
#include "ops/support/work_split.hpp"
#include "runtime/environment.hpp"

namespace declivity::ops {
namespace {

char letter(const std::array<std::int64_t, 3>& strides, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
    const char layout = strides[2] == 1 || columns == 1 ? 'N' : strides[1] == 1 || rows == 1 ? 'T' : 'S';
    return strides[0] == 0 && batch > 1 ? static_cast<char>(layout - 'A' + 'a') : layout;
}

/// Random numbers in the layout given by `lies`, as far as a dense operand can have it.
View random_with_layout(const Device& device, DType dtype, const Shape& shape, char lies) {
    const bool repeated = lies >= 'a', transposed = lies == 'T' || lies == 't';
    const std::int64_t batch = repeated ? 1 : shape[0], rows = shape[1], columns = shape[2];
    View operand =
        random_operand(device, dtype, transposed ? Shape{batch, columns, rows} : Shape{batch, rows, columns});
    if (transposed) operand = permuted(operand, {0, 2, 1});
    return expanded("tune", operand, shape);
}

void with_random_operands(const Device& device, const MatmulProblem& p,
                          const StrategySet<MatmulStrategy>::Measurement& measurement) {
    const View a = random_with_layout(device, p.dtype, {p.batch, p.m, p.k}, p.layouts()[0]),
               b = random_with_layout(device, p.dtype, {p.batch, p.k, p.n}, p.layouts()[1]),
               out = View::make(device, p.dtype, {p.batch, p.m, p.n});
    measurement({a, b, out}, out);
}

const StrategySet<MatmulStrategy>& strategy_set() {
#define MATMUL_STRATEGY(name) &matmul_##name(),
    static const std::array all{
#include "matmul_strategies.def"
    };
#undef MATMUL_STRATEGY
    static const StrategySet<MatmulStrategy> set{
        "DECLIVITY_MATMUL", [] { return declivity::detail::environment().matmul; }, all, with_random_operands};
    return set;
}

MatmulProblem problem_of(const Device& device, const MatmulShape& shape) {
    for (const std::int64_t size : {shape.batch, shape.m, shape.n, shape.k})
        if (size < 1)
            throw ShapeError(fmt::format("tune: expected a batch, m, n and k of at least 1, got {}, {}, {} and {}",
                                         shape.batch, shape.m, shape.n, shape.k));
    const auto strides = [](std::int64_t rows, std::int64_t columns, bool transposed) {
        return transposed ? std::array{rows * columns, std::int64_t{1}, rows}
                          : std::array{rows * columns, columns, std::int64_t{1}};
    };
    return {.dtype = shape.dtype,
            .style = kernel_style_of(device),
            .batch = shape.batch,
            .m = shape.m,
            .n = shape.n,
            .k = shape.k,
            .a_strides = strides(shape.m, shape.k, shape.a_transposed),
            .b_strides = strides(shape.k, shape.n, shape.b_transposed)};
}

}  // namespace

std::span<const MatmulStrategy* const> matmul_strategies() { return strategy_set().strategies; }

MatmulChoice choose_matmul(const MatmulProblem& problem, const Device& device) {
    return choose_strategy(strategy_set(), problem, device);
}

std::string MatmulProblem::layouts() const { return {letter(a_strides, batch, m, k), letter(b_strides, batch, k, n)}; }

std::string tuning_key(const MatmulProblem& problem) { return key_of_fields("matmul", problem); }

std::string tune(const Device& device, const MatmulShape& shape, bool remeasure) {
    return tune_strategies(strategy_set(), problem_of(device, shape), device, remeasure);
}

std::string explain(const Device& device, const MatmulShape& shape) {
    return explain_strategies(strategy_set(), problem_of(device, shape), device);
}

}  // namespace declivity::ops
