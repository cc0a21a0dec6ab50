// The elementwise functions of math.hpp and activation.hpp as cases of the catalogue, with the references of the
// table's rows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <reference/elementwise_cases.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/support/values.hpp>

namespace declivity::test::catalogue {
namespace {

/// Operands after the first are broadcast to it.
Case table_case(const std::string& name, std::function<Tensor(const Tensors&)> call, Function function,
                Kind kind = Kind::real) {
    const ElementwiseCase& row = *case_of(function);
    const auto inputs = static_cast<std::size_t>(ops::info(function).inputs);
    const Shape shape{3, 5, 7}, shapes[] = {shape, {5, 1}, {7}};
    std::vector<Input> all;
    for (std::size_t i = 0; i < inputs; ++i)
        all.push_back({shapes[i], std::max(row.low, -4.0), std::min(row.high, 4.0), kind});
    return {.name = name,
            .inputs = std::move(all),
            .call = std::move(call),
            .reference =
                [&row, shape, inputs](const Columns& in, DType) {
                    return table(shape, [&](const Dims& at) {
                        Arguments arguments{.a = in[0][flat_index(shape, {at[0], at[1], at[2]})]};
                        if (inputs > 1) arguments.b = in[1][static_cast<std::size_t>(at[1])];
                        if (inputs > 2) arguments.c = in[2][static_cast<std::size_t>(at[2])];
                        if (!row.parameters.empty()) arguments.p = row.parameters[0];
                        if (row.parameters.size() > 1) arguments.q = row.parameters[1];
                        return row.value(arguments);
                    });
                },
            .differentiable = kind == Kind::real,
            .terms = row.ulps / 2,
            .zero_gradient = function == Function::floor || function == Function::ceil || function == Function::round ||
                             function == Function::trunc || function == Function::sign,
            .sampled = true};
}

/// A function of one tensor composed of others.
Case composed_case(const std::string& name, std::function<Tensor(const Tensor&)> call,
                   std::function<double(double)> reference, double low = -3, double high = 3) {
    return {.name = name,
            .inputs = {{{3, 5, 7}, low, high}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [reference = std::move(reference)](const Columns& in, DType) {
                    Values out;
                    for (const double x : in[0]) out.push_back(reference(x));
                    return out;
                },
            .terms = 4,
            .sampled = true};
}

/// A function of two, the second broadcast to the first.
Case composed_pair_case(const std::string& name, std::function<Tensor(const Tensor&, const Tensor&)> call,
                        double (*reference)(double, double), double low_b = -2, double high_b = 2) {
    return {.name = name,
            .inputs = {{{3, 5, 7}}, {{5, 1}, low_b, high_b}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0], in[1]); },
            .reference =
                [reference](const Columns& in, DType) {
                    return table({3, 5, 7}, [&](const Dims& at) {
                        return reference(in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})],
                                         in[1][static_cast<std::size_t>(at[1])]);
                    });
                },
            .terms = 4,
            .sampled = true};
}

/// x (3, 4, 7): the first two of axis 1 through `gated`, with the other two.
Case gated(const std::string& name, std::function<Tensor(const Tensor&)> call,
           std::function<double(double, double)> both) {
    return {.name = name,
            .inputs = {{{3, 4, 7}}},
            .call = [call = std::move(call)](const Tensors& in) { return call(in[0]); },
            .reference =
                [both = std::move(both)](const Columns& in, DType) {
                    return table({3, 2, 7}, [&](const Dims& at) {
                        return both(in[0][flat_index({3, 4, 7}, {at[0], at[1], at[2]})],
                                    in[0][flat_index({3, 4, 7}, {at[0], at[1] + 2, at[2]})]);
                    });
                },
            .terms = 8};
}

/// Rows of the table.
std::vector<Case> math_cases() {
    return {
        table_case(
            "floor", [](const Tensors& in) { return floor(in[0]); }, Function::floor),
        table_case(
            "ceil", [](const Tensors& in) { return ceil(in[0]); }, Function::ceil),
        table_case(
            "round", [](const Tensors& in) { return round(in[0]); }, Function::round),
        table_case(
            "trunc", [](const Tensors& in) { return trunc(in[0]); }, Function::trunc),
        table_case(
            "frac", [](const Tensors& in) { return frac(in[0]); }, Function::frac),
        table_case(
            "sign", [](const Tensors& in) { return sign(in[0]); }, Function::sign),
        table_case(
            "rsqrt", [](const Tensors& in) { return rsqrt(in[0]); }, Function::rsqrt),
        table_case(
            "log1p", [](const Tensors& in) { return log1p(in[0]); }, Function::log1p),
        table_case(
            "expm1", [](const Tensors& in) { return expm1(in[0]); }, Function::expm1),
        table_case(
            "log2", [](const Tensors& in) { return log2(in[0]); }, Function::log2),
        table_case(
            "log10", [](const Tensors& in) { return log10(in[0]); }, Function::log10),
        table_case(
            "exp2", [](const Tensors& in) { return exp2(in[0]); }, Function::exp2),
        table_case(
            "sin", [](const Tensors& in) { return sin(in[0]); }, Function::sin),
        table_case(
            "cos", [](const Tensors& in) { return cos(in[0]); }, Function::cos),
        table_case(
            "tan", [](const Tensors& in) { return tan(in[0]); }, Function::tan),
        table_case(
            "asin", [](const Tensors& in) { return asin(in[0]); }, Function::asin),
        table_case(
            "acos", [](const Tensors& in) { return acos(in[0]); }, Function::acos),
        table_case(
            "atan", [](const Tensors& in) { return atan(in[0]); }, Function::atan),
        table_case(
            "sinh", [](const Tensors& in) { return sinh(in[0]); }, Function::sinh),
        table_case(
            "cosh", [](const Tensors& in) { return cosh(in[0]); }, Function::cosh),
        table_case(
            "asinh", [](const Tensors& in) { return asinh(in[0]); }, Function::asinh),
        table_case(
            "acosh", [](const Tensors& in) { return acosh(in[0]); }, Function::acosh),
        table_case(
            "atanh", [](const Tensors& in) { return atanh(in[0]); }, Function::atanh),
        table_case(
            "erf", [](const Tensors& in) { return erf(in[0]); }, Function::erf),
        table_case(
            "erfc", [](const Tensors& in) { return erfc(in[0]); }, Function::erfc),
        table_case(
            "erfinv", [](const Tensors& in) { return erfinv(in[0]); }, Function::erfinv),
        table_case(
            "lgamma", [](const Tensors& in) { return lgamma(in[0]); }, Function::lgamma),
        table_case(
            "digamma", [](const Tensors& in) { return digamma(in[0]); }, Function::digamma),
        table_case(
            "isnan", [](const Tensors& in) { return isnan(in[0]); }, Function::isnan, Kind::constant),
        table_case(
            "isinf", [](const Tensors& in) { return isinf(in[0]); }, Function::isinf, Kind::constant),
        table_case(
            "isfinite", [](const Tensors& in) { return isfinite(in[0]); }, Function::isfinite, Kind::constant),
    };
}

std::vector<Case> activation_cases() {
    return {
        table_case(
            "logsigmoid", [](const Tensors& in) { return logsigmoid(in[0]); }, Function::logsigmoid),
        table_case(
            "softsign", [](const Tensors& in) { return softsign(in[0]); }, Function::softsign),
        table_case(
            "hardswish", [](const Tensors& in) { return hardswish(in[0]); }, Function::hardswish),
        table_case(
            "hardsigmoid", [](const Tensors& in) { return hardsigmoid(in[0]); }, Function::hardsigmoid),
        table_case(
            "mish", [](const Tensors& in) { return mish(in[0]); }, Function::mish),
        table_case(
            "gelu_tanh", [](const Tensors& in) { return gelu_tanh(in[0]); }, Function::gelu_tanh),
    };
}

std::vector<Case> math_cases_of_several() {
    return {
        table_case(
            "atan2", [](const Tensors& in) { return atan2(in[0], in[1]); }, Function::atan2),
        table_case(
            "hypot", [](const Tensors& in) { return hypot(in[0], in[1]); }, Function::hypot),
        table_case(
            "logaddexp", [](const Tensors& in) { return logaddexp(in[0], in[1]); }, Function::logaddexp),
        table_case(
            "copysign", [](const Tensors& in) { return copysign(in[0], in[1]); }, Function::copysign),
        table_case(
            "heaviside", [](const Tensors& in) { return heaviside(in[0], in[1]); }, Function::heaviside,
            Kind::constant),
        table_case(
            "lerp", [](const Tensors& in) { return lerp(in[0], in[1], in[2]); }, Function::lerp),
    };
}

std::vector<Case> activation_cases_with_parameters() {
    return {
        table_case(
            "elu", [](const Tensors& in) { return elu(in[0], 0.75); }, Function::elu),
        table_case(
            "softplus", [](const Tensors& in) { return softplus(in[0], 1.5, 2); }, Function::softplus),
        table_case(
            "hardtanh", [](const Tensors& in) { return hardtanh(in[0], -1, 2); }, Function::hardtanh),
        table_case(
            "threshold", [](const Tensors& in) { return threshold(in[0], -1, 2); }, Function::threshold),
        table_case(
            "softshrink", [](const Tensors& in) { return softshrink(in[0]); }, Function::softshrink),
        table_case(
            "hardshrink", [](const Tensors& in) { return hardshrink(in[0]); }, Function::hardshrink),
    };
}

/// Functions composed of others.
std::vector<Case> composed_cases() {
    return {
        composed_case(
            "relu6", [](const Tensor& x) { return relu6(x); }, [](double x) { return std::min(std::max(x, 0.0), 6.0); },
            -8, 8),
        composed_case(
            "selu", selu,
            [](double x) { return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * std::expm1(x)); }),
        composed_case(
            "celu", [](const Tensor& x) { return celu(x, 0.75); },
            [](double x) { return std::max(x, 0.0) + std::min(0.75 * std::expm1(x / 0.75), 0.0); }),
        composed_case("tanhshrink", tanhshrink, [](double x) { return x - std::tanh(x); }),
        composed_case(
            "rrelu", [](const Tensor& x) { return rrelu(x, 0.25, 0.5); },
            [](double x) { return x > 0 ? x : 0.375 * x; }),
        composed_case(
            "nan_to_num", [](const Tensor& x) { return nan_to_num(x); }, [](double x) { return x; }),
        composed_case(
            "polygamma", [](const Tensor& x) { return polygamma(2, x); },
            [](double x) { return -2 * hurwitz_zeta_reference(3, x); }, 0.5, 4),
        composed_case(
            "deg2rad", deg2rad, [](double x) { return x * std::numbers::pi / 180; }, -90, 90),
        composed_case("rad2deg", rad2deg, [](double x) { return x * 180 / std::numbers::pi; }),
        composed_case("sinc", sinc,
                      [](double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }),
        composed_case(
            "sinc", sinc, [](double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); },
            -0.1, 0.1),
        composed_case(
            "logit", [](const Tensor& x) { return logit(x); }, [](double x) { return std::log(x / (1 - x)); }, 0.1,
            0.9),
        composed_case(
            "logit", [](const Tensor& x) { return logit(x, 0.25); },
            [](double x) {
                const double p = std::min(std::max(x, 0.25), 0.75);
                return std::log(p / (1 - p));
            },
            -0.5, 1.5),
    };
}

std::vector<Case> composed_cases_of_pairs() {
    return {
        composed_pair_case(
            "logaddexp2", [](const Tensor& a, const Tensor& b) { return logaddexp2(a, b); },
            [](double a, double b) { return std::log2(std::exp2(a) + std::exp2(b)); }),
        composed_pair_case(
            "xlogy", [](const Tensor& a, const Tensor& b) { return xlogy(a, b); },
            [](double a, double b) { return a * std::log(b); }, 0.5, 3),
        composed_pair_case(
            "ldexp", [](const Tensor& a, const Tensor& b) { return ldexp(a, b); },
            [](double a, double b) { return a * std::exp2(b); }),
        composed_pair_case(
            "fmin", [](const Tensor& a, const Tensor& b) { return fmin(a, b); },
            [](double a, double b) { return std::fmin(a, b); }),
        composed_pair_case(
            "fmax", [](const Tensor& a, const Tensor& b) { return fmax(a, b); },
            [](double a, double b) { return std::fmax(a, b); }),
    };
}

std::vector<Case> gated_cases() {
    return {
        gated(
            "glu", [](const Tensor& x) { return glu(x, 1); },
            [](double a, double b) { return a / (1 + std::exp(-b)); }),
        gated(
            "swiglu", [](const Tensor& x) { return swiglu(x, 1); },
            [](double a, double b) { return a / (1 + std::exp(-a)) * b; }),
        gated(
            "geglu", [](const Tensor& x) { return geglu(x, -2); },
            [](double a, double b) { return a * normal_distribution(a) * b; }),
    };
}

void add_elementwise_of_several_shapes(std::vector<Case>& all) {
    all.push_back({.name = "prelu",
                   .inputs = {{{3, 5, 7}}, {{5}}},
                   .call = [](const Tensors& in) { return prelu(in[0], in[1]); },
                   .reference =
                       [](const Columns& in, DType) {
                           return table({3, 5, 7}, [&](const Dims& at) {
                               const double x = in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})];
                               return x > 0 ? x : in[1][static_cast<std::size_t>(at[1])] * x;
                           });
                       }});
    for (const bool divides : {false, true})
        all.push_back(
            {.name = divides ? "addcdiv" : "addcmul",
             .inputs = {{{3, 5, 7}}, {{5, 1}}, {{7}, 0.5, 2}},
             .call =
                 [divides](const Tensors& in) {
                     return divides ? addcdiv(in[0], in[1], in[2], 0.5) : addcmul(in[0], in[1], in[2], 0.5);
                 },
             .reference =
                 [divides](const Columns& in, DType) {
                     return table({3, 5, 7}, [&](const Dims& at) {
                         const double a = in[1][static_cast<std::size_t>(at[1])],
                                      b = in[2][static_cast<std::size_t>(at[2])];
                         return in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})] + 0.5 * (divides ? a / b : a * b);
                     });
                 },
             .terms = 4});
}

void add_bits(std::vector<Case>& all) {
    all.push_back({.name = "signbit",
                   .inputs = {{{3, 5, 7}, -2, 2, Kind::constant}},
                   .call = [](const Tensors& in) { return signbit(in[0]); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (const double x : in[0]) out.push_back(std::signbit(x) ? 1 : 0);
                           return out;
                       },
                   .differentiable = false});
    for (const bool left : {true, false})
        all.push_back({.name = left ? "bitwise_left_shift" : "bitwise_right_shift",
                       .inputs = {{{3, 5, 7}, 0, 9, Kind::label}, {{5, 1}, 0, 4, Kind::label}},
                       .call =
                           [left](const Tensors& in) {
                               return left ? bitwise_left_shift(in[0], in[1]) : bitwise_right_shift(in[0], in[1]);
                           },
                       .reference =
                           [left](const Columns& in, DType) {
                               return table({3, 5, 7}, [&](const Dims& at) {
                                   const auto a = bits(in[0][flat_index({3, 5, 7}, {at[0], at[1], at[2]})]),
                                              b = bits(in[1][static_cast<std::size_t>(at[1])]);
                                   return static_cast<double>(left ? a << b : a >> b);
                               });
                           },
                       .differentiable = false});
}

}  // namespace

std::vector<Case> elementwise_catalogue() {
    std::vector<Case> all;
    for (const auto part : {math_cases, activation_cases, math_cases_of_several, activation_cases_with_parameters,
                            composed_cases, composed_cases_of_pairs, gated_cases})
        for (Case& test_case : part()) all.push_back(std::move(test_case));
    add_elementwise_of_several_shapes(all);
    add_bits(all);
    return all;
}

}  // namespace declivity::test::catalogue
