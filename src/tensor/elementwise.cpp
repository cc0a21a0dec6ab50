#include <algorithm>
#include <array>
#include <cmath>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "broadcast.hpp"
#include "elementwise_gradients.hpp"
#include "ops/support/short_list.hpp"
#include "tensor_state.hpp"
#include "ops/engine/value.hpp"
#include "ops/engine/expression.hpp"

namespace declivity {
namespace {

using ops::Expression;
using ops::FunctionInfo;

/// The gradients of one call.
struct Rule {
    Function function;
    std::size_t inputs = 0;
    std::array<Shape, 3> shapes = {};
    std::array<Saved, 3> saved = {};  // those that a gradient which is wanted mentions
    Saved result = {};
    ops::ShortList<double, 2> parameters = {};

    std::vector<Tensor> operator()(const GradientContext& context) const {
        std::vector<Tensor> gradients(inputs);
        for (std::size_t i = 0; i < inputs; ++i) {
            if (!context.needs(i) || info().of_gradient[i].form == ops::GradientForm::none) continue;
            Tensor gradient = simple(i, context.gradient());
            if (!gradient.defined()) gradient = grad_enabled() ? composed(i, context) : by_text(i, context.gradient());
            gradients[i] = detail::sum_to(gradient, shapes[i]);
        }
        return gradients;
    }

  private:
    [[nodiscard]] const FunctionInfo& info() const { return ops::info(function); }
    [[nodiscard]] Tensor kept(std::size_t input) const { return saved[input].get(info().name); }

    /// Those that need no kernel of their own, and are taken up by epilogues; an undefined tensor for others.
    [[nodiscard]] Tensor simple(std::size_t input, const Tensor& g) const {
        using ops::GradientForm;
        switch (info().of_gradient[input].form) {
            case GradientForm::g:
                return g;
            case GradientForm::minus_g:
                return -g;
            case GradientForm::g_times_a:
                return g * kept(0);
            case GradientForm::g_times_b:
                return g * kept(1);
            case GradientForm::g_times_p:
                return g * parameters[0];
            case GradientForm::none:
            case GradientForm::other:
                break;
        }
        return {};
    }

    [[nodiscard]] Tensor composed(std::size_t input, const GradientContext& context) const {
        const auto parameter = [&](std::size_t at) { return at < parameters.size() ? parameters[at] : 0.0; };
        return detail::composed_gradient(function, input,
                                         {.g = context.gradient(),
                                          .a = kept(0),
                                          .b = kept(1),
                                          .c = kept(2),
                                          .y = context.output(result, info().name),
                                          .p = parameter(0),
                                          .q = parameter(1)});
    }

    [[nodiscard]] Tensor by_text(std::size_t input, const Tensor& g) const {
        const auto expression_of = [&](const Saved& one) {
            const ops::Value value = one.value(info().name);
            return value ? Expression(value) : Expression();
        };
        const std::array<Expression, 3> of{expression_of(saved[0]), expression_of(saved[1]), expression_of(saved[2])};
        return Tensor(ops::value_of(
            Expression::gradient(function, static_cast<int>(input), g.value(), std::span(of).first(inputs),
                                 expression_of(result), std::span(parameters.begin(), parameters.size())),
            g.device()));
    }
};

/// What a call was given, for its record.
class CallData {
  public:
    CallData(const FunctionInfo& row, std::span<const Tensor> inputs, std::span<const double> parameters)
        : input_count_(std::min(inputs.size(), inputs_.size())),
          parameter_count_(std::min(parameters.size(), parameters_.size())) {
        constexpr std::array<std::string_view, 3> chosen{"condition", "a", "b"}, named{"a", "b", "c"};
        for (std::size_t i = 0; i < input_count_; ++i)
            inputs_[i] = {row.domain == ops::Domain::choose ? chosen[i] : row.inputs == 1 ? "x" : named[i], inputs[i]};
        for (std::size_t i = 0; i < parameter_count_; ++i) parameters_[i] = {i == 0 ? "p" : "q", parameters[i]};
    }
    [[nodiscard]] std::span<const CallInput> inputs() const { return {inputs_.data(), input_count_}; }
    [[nodiscard]] std::span<const CallAttribute> attributes() const { return {parameters_.data(), parameter_count_}; }

  private:
    std::array<CallInput, 3> inputs_;
    std::array<CallAttribute, 2> parameters_;
    std::size_t input_count_, parameter_count_;
};

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

Tensor elementwise(Function function, std::span<const Tensor> inputs, std::span<const double> parameters,
                   std::string_view called) {
    const FunctionInfo& row = ops::info(function);
    const std::string_view name = called.empty() ? row.name : called;
    const CallData data(row, inputs, parameters);
    const FunctionCall call(row.name, name, data.inputs(), data.attributes());
    std::array<Expression, 3> expressions;
    if (inputs.size() > expressions.size())
        throw ValueError(fmt::format("{}: wants {} tensors, got {}", name, row.inputs, inputs.size()));
    bool wants_graph = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].defined())
            throw ValueError(fmt::format("{}: wants {} tensor{}, got an undefined one", name, row.inputs,
                                         row.inputs == 1 ? "" : "s"));
        expressions[i] = Expression(inputs[i].value());
        wants_graph = wants_graph || inputs[i].requires_grad();
    }
    const Expression expression =
        Expression::apply(function, std::span(expressions).first(inputs.size()), parameters, called);
    const ops::Value result = ops::value_of(expression, inputs[0].device());
    if (!row.has_gradient || !wants_graph || !grad_enabled()) return call.result(Tensor(result));

    Rule rule{.function = function, .inputs = inputs.size(), .parameters = {parameters.begin(), parameters.end()}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        rule.shapes[i] = inputs[i].shape();
        if (!inputs[i].requires_grad()) continue;
        for (std::size_t other = 0; other < inputs.size(); ++other)
            if (row.of_gradient[i].needs_input[other]) rule.saved[other] = Saved(inputs[other]);
        if (row.of_gradient[i].needs_result) rule.result = Saved::result(result);
    }
    const Tensor out = differentiable(row.name, {inputs.begin(), inputs.end()}, result, std::move(rule),
                                      detail::has_composed_gradients(function) ? RuleKind::composed : RuleKind::opaque);
    if (row.inputs == 1)
        out.state()->node->activation =
            detail::Activation{.function = function, .parameters = {parameters.begin(), parameters.end()}};
    return call.result(out);
}

}  // namespace declivity
