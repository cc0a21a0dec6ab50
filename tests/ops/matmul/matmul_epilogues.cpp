// Epilogues of matrix products by every strategy compared with a plain reference.
#include "matmul_fixture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ops/matmul/matmul_strategies.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::Expression;
using ops::Function;

namespace {

/// Epilogues that product kernels support.
enum class EpilogueSupport : std::uint8_t {
    none,
    arguments,  ///< passed to any kernel
    compiled,   ///< compiled into a kernel of its own
};

/// An epilogue, and its reference for element i of the product.
struct Epilogue {
    const char* name;
    EpilogueSupport support;
    Expression expression;
    std::function<double(double value, std::size_t i)> expected;
};

std::vector<Epilogue> epilogues_for(const MatmulCase& test_case, const Tensor& bias, const Tensor& row_bias,
                                    const Tensor& residual, const Shape& shape) {
    const auto apply = [](Function function, std::initializer_list<Expression> inputs,
                          std::initializer_list<Scalar> parameters = {}) {
        return Expression::apply(function, std::vector<Expression>(inputs), std::vector<Scalar>(parameters));
    };
    const Expression x = Expression::operator_result(DType::f32, shape), b = bias.view(), r = residual.view();
    const auto n = static_cast<std::size_t>(test_case.n), m = static_cast<std::size_t>(test_case.m);
    const auto added = [b = values(bias), n](std::size_t i) { return b[i % n]; };
    const auto other = [r = values(residual)](std::size_t i) { return r[i]; };
    const auto for_row = [b = values(row_bias), n, m](std::size_t i) { return b[i / n % m]; };
    const auto relu = [](double v) { return std::max(0.0, v); };
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    return {
        {"bias", EpilogueSupport::arguments, apply(Function::add, {x, b}),
         [=](double v, std::size_t i) { return v + added(i); }},
        {"bias, relu", EpilogueSupport::arguments, apply(Function::relu, {apply(Function::add, {b, x})}),
         [=](double v, std::size_t i) { return relu(v + added(i)); }},
        {"bias, residual, relu", EpilogueSupport::arguments,
         apply(Function::relu, {apply(Function::add, {r, apply(Function::add, {x, b})})}),
         [=](double v, std::size_t i) { return relu(v + added(i) + other(i)); }},
        {"relu", EpilogueSupport::arguments, apply(Function::relu, {x}),
         [=](double v, std::size_t) { return relu(v); }},
        {"residual", EpilogueSupport::arguments, apply(Function::add, {x, r}),
         [=](double v, std::size_t i) { return v + other(i); }},
        {"factors", EpilogueSupport::arguments,
         apply(Function::sub, {apply(Function::mul_scalar, {x}, {0.5}), apply(Function::mul_scalar, {r}, {3})}),
         [=](double v, std::size_t i) { return 0.5 * v - 3 * other(i); }},
        {"negative", EpilogueSupport::arguments, apply(Function::neg, {apply(Function::sub, {x, r})}),
         [=](double v, std::size_t i) { return other(i) - v; }},
        {"bias, gelu", EpilogueSupport::compiled, apply(Function::gelu, {apply(Function::add, {x, b})}),
         [=](double v, std::size_t i) {
             return 0.5 * (v + added(i)) * (1 + std::erf((v + added(i)) / std::sqrt(2.0)));
         }},
        {"sigmoid", EpilogueSupport::compiled, apply(Function::sigmoid, {x}),
         [=](double v, std::size_t) { return sigmoid(v); }},
        {"bias, leaky relu", EpilogueSupport::compiled,
         apply(Function::leaky_relu, {apply(Function::add, {x, b})}, {0.25}),
         [=](double v, std::size_t i) { return v + added(i) < 0 ? 0.25 * (v + added(i)) : v + added(i); }},
        {"clamp", EpilogueSupport::compiled, apply(Function::clamp, {x}, {-0.5, 0.25}),
         [](double v, std::size_t) { return std::clamp(v, -0.5, 0.25); }},
        {"gradient of relu", EpilogueSupport::arguments,
         Expression::gradient(Function::relu, 0, apply(Function::add, {x, r}), {}, r, {}),
         [=](double v, std::size_t i) { return other(i) > 0 ? v + other(i) : 0.0; }},
        {"gradient of leaky relu", EpilogueSupport::compiled,
         Expression::gradient(Function::leaky_relu, 0, apply(Function::add, {b, x}), std::array{r}, {},
                              std::array<Scalar, 1>{0.25}),
         [=](double v, std::size_t i) { return (other(i) > 0 ? 1 : 0.25) * (v + added(i)); }},
        {"gradient of an activation of less", EpilogueSupport::none,
         Expression::gradient(Function::tanh, 0, x, {}, b, {}),
         [=](double v, std::size_t i) { return v * (1 - added(i) * added(i)); }},
        {"a number for each row", EpilogueSupport::none, apply(Function::add, {x, row_bias.view()}),
         [=](double v, std::size_t i) { return v + for_row(i); }},
        {"relu first", EpilogueSupport::none, apply(Function::add, {apply(Function::relu, {x}), b}),
         [=](double v, std::size_t i) { return relu(v) + added(i); }},
        {"two residuals", EpilogueSupport::none, apply(Function::add, {apply(Function::add, {x, r}), r}),
         [=](double v, std::size_t i) { return v + 2 * other(i); }},
        {"twice the product", EpilogueSupport::none, apply(Function::add, {x, x}),
         [](double v, std::size_t) { return 2 * v; }},
        {"tanh of relu", EpilogueSupport::none, apply(Function::tanh, {apply(Function::relu, {x})}),
         [=](double v, std::size_t) { return std::tanh(relu(v)); }},
    };
}

}  // namespace

TEST_CASE("matmul: an epilogue is applied to the product") {
    // Several blocks of k, partial panels and tiles, operands supported by each strategy.
    const MatmulCase cases[] = {
        {2, 5, 6, 7, OperandStrides::dense, OperandStrides::transposed},
        {1, 9, 50, small_cases() ? 20 : 1100, OperandStrides::dense, OperandStrides::transposed},
        {3, 16, 96, 3},
        {1, 3, 8, 40, OperandStrides::dense, OperandStrides::transposed}};
    for (const MatmulCase& test_case : cases) {
        const auto a = matmul_operand(test_case.a, test_case.batch, test_case.m, test_case.k, 1, DType::f32),
                   b = matmul_operand(test_case.b, test_case.batch, test_case.k, test_case.n, 2, DType::f32);
        const Shape shape{test_case.batch, test_case.m, test_case.n};
        const auto product = matmul_reference(test_case, a.elements, b.elements);
        const Tensor bias = random_tensor({test_case.n}, 3), row_bias = random_tensor({test_case.m, 1}, 4),
                     residual = random_tensor(shape, 5);
        for (const Epilogue& epilogue : epilogues_for(test_case, bias, row_bias, residual, shape)) {
            // Kernels with their own activation take long to compile.
            if (epilogue.support == EpilogueSupport::compiled && &test_case != &cases[1] && &test_case != &cases[3])
                continue;
            CAPTURE(test_case.name());
            CAPTURE(epilogue.name);
            CHECK(ops::kernel_epilogue(ops::epilogue_of(epilogue.expression), View::make(device(), DType::f32, shape))
                      .has_value() == (epilogue.support != EpilogueSupport::none));
            auto expected = product;
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = epilogue.expected(expected[i], i);
            for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
                const auto style = kernel_style_for(*strategy);
                const ops::MatmulProblem problem = ops::matmul_problem(a.view, b.view);
                if (!strategy->is_applicable(problem, device())) continue;
                const bool fuses_epilogue = strategy->fuses_epilogue(problem, device(), "");
                if (small_cases() &&
                    (&test_case != &cases[3] || (!fuses_epilogue && strategy->name() != "register_tiled")))
                    continue;
                CAPTURE(strategy->name());
                const Environment set("DECLIVITY_MATMUL", std::string(strategy->name()));
                const Guarded result(shape, DType::f32);
                ops::matmul(a.view, b.view, result.out, ops::epilogue_of(epilogue.expression));
                CHECK(difference(Tensor(result.out), expected,
                                 tolerance(DType::f32, static_cast<double>(test_case.k + 2))) == "");
                CHECK(result.intact());
            }
        }
    }
}

TEST_CASE("matmul: an epilogue on f16 and bf16 is applied before the single rounding") {
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const std::int64_t k : {std::int64_t{12}, std::int64_t{small_cases() ? 20 : 1200}}) {
            if (small_cases() && (dtype == DType::bf16 || k > 12)) continue;
            const MatmulCase test_case{1, 4, 24, k, OperandStrides::dense, OperandStrides::transposed};
            const auto a = matmul_operand(test_case.a, 1, test_case.m, k, 1, dtype),
                       b = matmul_operand(test_case.b, 1, k, test_case.n, 2, dtype);
            const Tensor bias = random_tensor({test_case.n}, 3, dtype),
                         residual = random_tensor({1, test_case.m, test_case.n}, 4, dtype);
            const Shape shape{1, test_case.m, test_case.n};
            const auto apply = [](Function function, std::initializer_list<Expression> inputs) {
                return Expression::apply(function, std::vector<Expression>(inputs));
            };
            const Expression epilogue = apply(
                Function::relu,
                {apply(Function::add, {apply(Function::add, {Expression::operator_result(dtype, shape), bias.view()}),
                                       residual.view()})});
            auto expected = matmul_reference(test_case, a.elements, b.elements);
            for (std::size_t i = 0; i < expected.size(); ++i)
                expected[i] = std::max(0.0, expected[i] + values(bias)[i % 24] + values(residual)[i]);
            for (const std::string_view strategy : {"blocked", "tiled", "gemv"}) {
                CAPTURE(strategy);
                CAPTURE(name_of(dtype));
                CAPTURE(k);
                const Environment set("DECLIVITY_MATMUL", std::string(strategy));
                const auto style = kernel_style_for(strategy_of(strategy));
                const Guarded result(shape, dtype);
                ops::matmul(a.view, b.view, result.out, ops::epilogue_of(epilogue));
                CHECK(difference(Tensor(result.out), expected, test_case.allowed(dtype)) == "");
                CHECK(result.intact());
            }
        }
}

TEST_CASE("matmul: an epilogue is applied once to the reduced partial sums") {
    const ops::KernelStyleScope scope(KernelStyle::simt);
    const std::int64_t k = small_cases() ? 40 : 700;
    const MatmulCase test_case{1, 3, 8, k, OperandStrides::dense, OperandStrides::transposed};
    const auto a = matmul_operand(test_case.a, 1, 3, k, 1, DType::f32),
               b = matmul_operand(test_case.b, 1, k, 8, 2, DType::f32);
    const Tensor bias = random_tensor({8}, 3), residual = random_tensor({1, 3, 8}, 4);
    auto expected = matmul_reference(test_case, a.elements, b.elements);
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = std::tanh(2 * expected[i] + values(bias)[i % 8] - values(residual)[i]);
    const View out = View::make(device(), DType::f32, {1, 3, 8});
    ops::matmul_tiled().run(
        ops::matmul_problem(a.view, b.view),
        {a.view,
         b.view,
         out,
         {.alpha = 2, .beta = -1, .bias = bias.view(), .residual = residual.view(), .activation = Function::tanh}},
        "32x32x3");
    CHECK(difference(Tensor(out), expected, tolerance(DType::f32, static_cast<double>(k))) == "");
}
