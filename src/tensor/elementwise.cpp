#include <cmath>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "broadcast.hpp"
#include "elementwise_gradients.hpp"
#include "tensor_state.hpp"

namespace declivity {
namespace {

using ops::Expression;
using ops::FunctionInfo;

/// Gradients that need no kernel of their own, and are taken up by epilogues; an undefined tensor for others.
Tensor simple_gradient(const FunctionInfo& row, std::size_t input, const Tensor& g, const std::vector<Saved>& inputs,
                       const std::vector<double>& parameters) {
    using ops::GradientForm;
    switch (row.of_gradient[input].form) {
        case GradientForm::g:
            return g;
        case GradientForm::minus_g:
            return -g;
        case GradientForm::g_times_a:
            return g * inputs[0].get(row.name);
        case GradientForm::g_times_b:
            return g * inputs[1].get(row.name);
        case GradientForm::g_times_p:
            return g * parameters[0];
        case GradientForm::none:
        case GradientForm::other:
            break;
    }
    return {};
}

Expression expression_of(const Saved& saved, std::string_view function) {
    const Tensor tensor = saved.get(function);
    return tensor.defined() ? Expression(tensor.value()) : Expression();
}

}  // namespace

Tensor operator/(Tensor x, double p) {
    const double factor = 1.0 / p;
    const bool whole = std::isfinite(factor) && factor == std::trunc(factor);
    if (x.defined() && !is_floating(x.dtype()) && !whole)
        throw TypeError(
            fmt::format("operator/: wants f32, f64, f16 or bf16 to divide by {}, got {} (convert with .to(DType::f32))",
                        p, name_of(x.dtype())));
    return elementwise(Function::mul_scalar, {std::move(x)}, {factor}, "operator/");
}

Tensor elementwise(Function function, const std::vector<Tensor>& inputs, const std::vector<double>& parameters,
                   std::string_view called) {
    const FunctionInfo& row = ops::info(function);
    const std::string_view name = called.empty() ? row.name : called;
    const Span span(row.name);
    std::vector<Expression> expressions;
    for (const Tensor& input : inputs) {
        if (!input.defined())
            throw ValueError(fmt::format("{}: wants {} tensor{}, got an undefined one", name, row.inputs,
                                         row.inputs == 1 ? "" : "s"));
        expressions.emplace_back(input.value());
    }
    const Expression expression = Expression::apply(function, expressions, parameters, called);
    const ops::Value result(expression, inputs[0].device());
    if (!row.has_gradient || !recorded(inputs)) return Tensor(result);

    // Only what some rule that will be asked mentions is kept.
    std::vector<Saved> saved(inputs.size());
    Saved saved_result;
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        shapes.push_back(inputs[i].shape());
        if (!inputs[i].requires_grad()) continue;
        for (std::size_t other = 0; other < inputs.size(); ++other)
            if (row.of_gradient[i].needs_input[other]) saved[other] = Saved(inputs[other]);
        if (row.of_gradient[i].needs_result) saved_result = Saved::result(result);
    }
    const auto rule = [function, shapes, saved, saved_result, parameters](const GradientContext& context) {
        const FunctionInfo& of = ops::info(function);
        const Tensor& g = context.gradient();
        std::vector<Tensor> gradients(shapes.size());
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            if (!context.needs(i) || of.of_gradient[i].form == ops::GradientForm::none) continue;
            Tensor gradient = simple_gradient(of, i, g, saved, parameters);
            if (!gradient.defined() && grad_enabled()) {
                const auto input = [&](std::size_t at) {
                    return at < saved.size() ? saved[at].get(of.name) : Tensor();
                };
                const auto parameter = [&](std::size_t at) { return at < parameters.size() ? parameters[at] : 0.0; };
                gradient = detail::composed_gradient(function, i,
                                                     {.g = g,
                                                      .a = input(0),
                                                      .b = input(1),
                                                      .c = input(2),
                                                      .y = context.output(saved_result, of.name),
                                                      .p = parameter(0),
                                                      .q = parameter(1)});
            } else if (!gradient.defined()) {
                std::vector<Expression> kept;
                for (const Saved& one : saved) kept.push_back(expression_of(one, of.name));
                const auto expression_of_gradient = Expression::gradient(
                    function, static_cast<int>(i), g.value(), kept, expression_of(saved_result, of.name), parameters);
                gradient = Tensor(ops::Value(expression_of_gradient, g.device()));
            }
            gradients[i] = detail::sum_to(gradient, shapes[i]);
        }
        return gradients;
    };
    const Tensor out = differentiable(row.name, inputs, result, rule,
                                      detail::has_composed_gradients(function) ? RuleKind::composed : RuleKind::opaque);
    if (row.inputs == 1)
        out.state()->node->activation = detail::Activation{.function = function, .parameters = parameters};
    return out;
}

}  // namespace declivity
