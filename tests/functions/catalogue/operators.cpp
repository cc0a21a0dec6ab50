// Operators, functions of single elements and reductions as cases of the catalogue.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

Case unary(const std::string& name, std::function<Tensor(const Tensor&)> call, double (*reference)(double),
           double low = -2, double high = 2, Kind kind = Kind::real) {
    return {.name = name,
            .inputs = {{{3, 5, 7}, low, high, kind}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [reference](const Columns& in, DType) {
                    Values out;
                    for (const double x : in[0]) out.push_back(reference(x));
                    return out;
                },
            .differentiable = kind == Kind::real};
}

/// The second operand is broadcast to the first.
Case binary(const std::string& name, std::function<Tensor(const Tensor&, const Tensor&)> call,
            double (*reference)(double, double), const std::string& error_name = {}, double low = -2, double high = 2,
            Kind kind = Kind::real) {
    return {.name = name,
            .inputs = {{{3, 5, 7}, low, high, kind}, {{5, 1}, low, high, kind}},
            .call = [call](const Tensors& in) { return call(in[0], in[1]); },
            .reference =
                [reference](const Columns& in, DType) {
                    return table({3, 5, 7}, [&](const Dims& at) {
                        return reference(in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})],
                                         in[1][static_cast<std::size_t>(at[1])]);
                    });
                },
            .differentiable = kind == Kind::real,
            .error_name = error_name};
}

/// A reduction of (3, 5, 7) over axes 0 and 2.
Case reduction(const std::string& name, Tensor (*call)(Tensor, const Dims&, bool), double (*fold)(const Values&)) {
    return {.name = name,
            .inputs = {{{3, 5, 7}}},
            .call =
                [call](const Tensors& in) {
                    return call(in[0], {0, -1}, false);
                },
            .reference =
                [fold](const Columns& in, DType) {
                    return table({5}, [&](const Dims& at) {
                        return fold(table({3, 7}, [&](const Dims& reduced_index) {
                            return in[0][flat_index({3, 5, 7}, {reduced_index[0], at[0], reduced_index[1]})];
                        }));
                    });
                },
            .terms = 21};
}

void add_binary_arithmetic(std::vector<Case>& all) {
    const auto add = adder(all);
    add(binary(
        "elementwise",
        [](const Tensor& a, const Tensor& b) {
            return elementwise(Function::mul, {a, b});
        },
        [](double a, double b) { return a * b; }, "mul"));
    add(binary(
        "operator+", [](const Tensor& a, const Tensor& b) { return a + b; }, [](double a, double b) { return a + b; }));
    add(binary(
        "operator-", [](const Tensor& a, const Tensor& b) { return a - b; }, [](double a, double b) { return a - b; }));
    add(binary(
        "operator*", [](const Tensor& a, const Tensor& b) { return a * b; }, [](double a, double b) { return a * b; }));
    add(binary(
        "operator/", [](const Tensor& a, const Tensor& b) { return a / b; }, [](double a, double b) { return a / b; },
        {}, 0.5, 2));
    add(binary(
        "pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
        [](double a, double b) { return std::pow(a, b); }, {}, 0.5, 2));
    add(binary("minimum", minimum, [](double a, double b) { return std::min(a, b); }));
    add(binary("maximum", maximum, [](double a, double b) { return std::max(a, b); }));
}

void add_comparisons(std::vector<Case>& all) {
    const auto add = adder(all);
    add(binary(
        "equal", equal, [](double a, double b) { return a == b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "eq", eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "not_equal", not_equal, [](double a, double b) { return a != b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "ne", ne, [](double a, double b) { return a != b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "less", less, [](double a, double b) { return a < b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "lt", lt, [](double a, double b) { return a < b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "less_equal", less_equal, [](double a, double b) { return a <= b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "le", le, [](double a, double b) { return a <= b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "greater", greater, [](double a, double b) { return a > b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "gt", gt, [](double a, double b) { return a > b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "greater_equal", greater_equal, [](double a, double b) { return a >= b ? 1.0 : 0.0; }, {}, 0, 3,
        Kind::integral));
    add(binary(
        "ge", ge, [](double a, double b) { return a >= b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "operator==", [](const Tensor& a, const Tensor& b) { return a == b; },
        [](double a, double b) { return a == b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "operator!=", [](const Tensor& a, const Tensor& b) { return a != b; },
        [](double a, double b) { return a != b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "operator<", [](const Tensor& a, const Tensor& b) { return a < b; },
        [](double a, double b) { return a < b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "operator<=", [](const Tensor& a, const Tensor& b) { return a <= b; },
        [](double a, double b) { return a <= b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "operator>", [](const Tensor& a, const Tensor& b) { return a > b; },
        [](double a, double b) { return a > b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
    add(binary(
        "operator>=", [](const Tensor& a, const Tensor& b) { return a >= b; },
        [](double a, double b) { return a >= b ? 1.0 : 0.0; }, {}, 0, 3, Kind::integral));
}

void add_binary_logic(std::vector<Case>& all) {
    const auto add = adder(all);
    add(binary(
        "bitwise_and", bitwise_and, [](double a, double b) { return a * b; }, {}, 0, 1, Kind::boolean));
    add(binary(
        "bitwise_or", bitwise_or, [](double a, double b) { return std::max(a, b); }, {}, 0, 1, Kind::boolean));
    add(binary(
        "bitwise_xor", bitwise_xor, [](double a, double b) { return a == b ? 0.0 : 1.0; }, {}, 0, 1, Kind::boolean));
    add(binary(
        "operator&", [](const Tensor& a, const Tensor& b) { return a & b; }, [](double a, double b) { return a * b; },
        {}, 0, 1, Kind::boolean));
    add(binary(
        "operator|", [](const Tensor& a, const Tensor& b) { return a | b; },
        [](double a, double b) { return std::max(a, b); }, {}, 0, 1, Kind::boolean));
    add(binary(
        "operator^", [](const Tensor& a, const Tensor& b) { return a ^ b; },
        [](double a, double b) { return a == b ? 0.0 : 1.0; }, {}, 0, 1, Kind::boolean));
    add(binary(
        "logical_and", logical_and, [](double a, double b) { return a * b; }, {}, 0, 1, Kind::boolean));
    add(binary(
        "logical_or", logical_or, [](double a, double b) { return std::max(a, b); }, {}, 0, 1, Kind::boolean));
    add(binary(
        "logical_xor", logical_xor, [](double a, double b) { return a == b ? 0.0 : 1.0; }, {}, 0, 1, Kind::boolean));
}

void add_divisions(std::vector<Case>& all) {
    const auto add = adder(all);
    add(binary(
        "floor_divide", [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); },
        [](double a, double b) { return std::floor(a / b); }, {}, 1, 9, Kind::integral));
    // No quotient is near an integer, where the function jumps.
    add(binary(
        "remainder", [](const Tensor& a, const Tensor& b) { return remainder(a, b); },
        [](double a, double b) { return a - b * std::floor(a / b); }, {}, 1.01, 1.99));
    // No quotient is near an integer, where the function jumps.
    add(binary(
        "operator%", [](const Tensor& a, const Tensor& b) { return a % b; },
        [](double a, double b) { return a - b * std::floor(a / b); }, {}, 1.01, 1.99));
    // No quotient is near an integer, where the function jumps.
    add(binary(
        "fmod", [](const Tensor& a, const Tensor& b) { return fmod(a, b); },
        [](double a, double b) { return std::fmod(a, b); }, {}, 1.01, 1.99));
}

void add_unary_logic(std::vector<Case>& all) {
    const auto add = adder(all);
    add(unary(
        "bitwise_not", [](const Tensor& x) { return bitwise_not(x); }, [](double x) { return 1 - x; }, 0, 1,
        Kind::boolean));
    add(unary(
        "operator~", [](const Tensor& x) { return ~x; }, [](double x) { return 1 - x; }, 0, 1, Kind::boolean));
    add(unary(
        "logical_not", logical_not, [](double x) { return 1 - x; }, 0, 1, Kind::boolean));
    add(unary(
        "operator!", [](const Tensor& x) { return !x; }, [](double x) { return 1 - x; }, 0, 1, Kind::boolean));
}

void add_operators_with_numbers(std::vector<Case>& all) {
    const auto add = adder(all);
    add(unary(
        "operator+", [](const Tensor& x) { return 3 + (x + 0.5); }, [](double x) { return x + 3.5; }));
    add(unary(
        "operator-", [](const Tensor& x) { return 3 - (-x - 0.5); }, [](double x) { return 3.5 + x; }));
    add(unary(
        "operator*", [](const Tensor& x) { return 3 * (x * 0.5); }, [](double x) { return 1.5 * x; }));
    add(unary(
        "operator/", [](const Tensor& x) { return 3 / (x / 2); }, [](double x) { return 6 / x; }, 0.5, 2));
    add(unary(
        "pow", [](const Tensor& x) { return pow(x, 2.5); }, [](double x) { return std::pow(x, 2.5); }, 0.5, 2));
    add(unary(
        "pow", [](const Tensor& x) { return pow(1.5, x); }, [](double x) { return std::pow(1.5, x); }));
}

void add_unary_functions(std::vector<Case>& all) {
    const auto add = adder(all);
    add(unary("neg", neg, [](double x) { return -x; }));
    add(unary(
        "abs", [](const Tensor& x) { return abs(x); }, [](double x) { return std::abs(x); }));
    add(unary("square", square, [](double x) { return x * x; }));
    add(unary(
        "sqrt", [](const Tensor& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, 0.5, 2));
    add(unary(
        "reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.5, 2));
    add(unary(
        "exp", [](const Tensor& x) { return exp(x); }, [](double x) { return std::exp(x); }));
    add(unary(
        "log", [](const Tensor& x) { return log(x); }, [](double x) { return std::log(x); }, 0.5, 2));
    add(unary(
        "tanh", [](const Tensor& x) { return tanh(x); }, [](double x) { return std::tanh(x); }));
    add(unary("sigmoid", sigmoid, logistic));
    add(unary("relu", relu, [](double x) { return std::max(x, 0.0); }));
    add(unary(
        "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); },
        [](double x) { return x > 0 ? x : 0.2 * x; }));
    add(unary("gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }));
    add(unary("silu", silu, [](double x) { return x * logistic(x); }));
    add(unary(
        "clamp", [](const Tensor& x) { return clamp(x, -1, 0.5); }, [](double x) { return std::clamp(x, -1.0, 0.5); }));
}

void add_sums_and_extrema(std::vector<Case>& all) {
    const auto add = adder(all);
    add(reduction("sum", sum, total));
    add(reduction("mean", mean, [](const Values& x) { return total(x) / static_cast<double>(x.size()); }));
    add(reduction(
        "max", [](Tensor x, const Dims& axes, bool keep) { return max(std::move(x), axes, keep); },
        [](const Values& x) { return *std::ranges::max_element(x); }));
    add(reduction(
        "min", [](Tensor x, const Dims& axes, bool keep) { return min(std::move(x), axes, keep); },
        [](const Values& x) { return *std::ranges::min_element(x); }));
}

}  // namespace

std::vector<Case> operator_catalogue() {
    std::vector<Case> all;
    add_binary_arithmetic(all);
    add_comparisons(all);
    add_binary_logic(all);
    add_divisions(all);
    add_unary_logic(all);
    add_operators_with_numbers(all);
    add_unary_functions(all);
    add_sums_and_extrema(all);
    return all;
}

}  // namespace declivity::test::catalogue
