#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "autograd/graph.hpp"
#include "divisor.hpp"
#include "elementwise_gradients.hpp"
#include "functions/support/broadcast.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/expression_node.hpp"
#include "ops/engine/formula.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/engine/lazy_array_state.hpp"
#include "ops/support/inline_vector.hpp"
#include "tensor/promotion.hpp"

namespace declivity {
namespace {

using ops::Expression;
using ops::FunctionInfo;

/// Backward rule of one call.
struct Rule {
    Function function;
    std::size_t inputs = 0;
    std::array<Shape, 3> shapes = {};
    std::array<Saved, 3> saved = {};  // those used by a required gradient
    Saved result = {};
    ops::InlineVector<Scalar, 2> parameters = {};

    std::vector<Tensor> operator()(const GradientContext& context) const {
        std::vector<Tensor> gradients(inputs);
        for (std::size_t i = 0; i < inputs; ++i) {
            const detail::GradientRules::Input& rule = detail::gradient_rules(function).inputs[i];
            if (!context.needs(i) || !rule.exists) continue;
            const ops::GradientForm form = info().gradient_info[i].form;
            const bool computes = form != ops::GradientForm::g && form != ops::GradientForm::minus_g;
            if (computes && is_16bit_float(context.gradient().dtype()) && !(context.gradient().shape() == shapes[i])) {
                gradients[i] = decomposed(i, context);  // summed without rounding
                continue;
            }
            Tensor gradient = simple(i, context.gradient());
            if (!gradient.defined())
                gradient = rule.decomposition_only || grad_enabled() ? decomposed(i, context)
                                                                     : kernel_gradient(i, context.gradient());
            gradients[i] = detail::sum_to(gradient, shapes[i]);
        }
        return gradients;
    }

  private:
    [[nodiscard]] const FunctionInfo& info() const { return ops::info(function); }
    [[nodiscard]] Tensor saved_input(std::size_t input) const { return saved[input].get(info().name); }

    /// Gradients without a kernel of their own, which are fused into epilogues; undefined for others.
    [[nodiscard]] Tensor simple(std::size_t input, const Tensor& g) const {
        using ops::GradientForm;
        switch (info().gradient_info[input].form) {
            case GradientForm::g:
                return g;
            case GradientForm::minus_g:
                return -g;
            case GradientForm::g_times_a:
                return g * saved_input(0);
            case GradientForm::g_times_b:
                return g * saved_input(1);
            case GradientForm::g_times_p:
                return g * parameters[0];
            case GradientForm::none:
            case GradientForm::other:
                break;
        }
        return {};
    }

    /// Gradient for an input, of its shape; computed in f32 for f16 and bf16, so that only the result is rounded.
    [[nodiscard]] Tensor decomposed(std::size_t input, const GradientContext& context) const {
        const auto parameter = [&](std::size_t index) {
            return index < parameters.size() ? parameters[index].to_double() : 0.0;
        };
        return detail::decomposed_in_f32(
            [&](const std::vector<Tensor>& in) {
                return std::vector{detail::sum_to(detail::decomposed_gradient(function, input,
                                                                              {.g = in[0],
                                                                               .a = in[1],
                                                                               .b = in[2],
                                                                               .c = in[3],
                                                                               .y = in[4],
                                                                               .p = parameter(0),
                                                                               .q = parameter(1)}),
                                                  shapes[input])};
            },
            {context.gradient(), saved_input_exact(0), saved_input_exact(1), saved_input_exact(2),
             context.output(result, info().name)})[0];
    }
    /// The saved input; a scalar combined with f16 or bf16 keeps its value, which a tensor of that type would round.
    [[nodiscard]] Tensor saved_input_exact(std::size_t input) const {
        const ops::LazyArray value = saved[input].value(info().name);
        if (!value || !is_16bit_float(value.dtype()) || !state_of(value)->constant) return saved_input(input);
        return Tensor(ops::make_lazy(Expression::constant(*state_of(value)->constant, compute_type(value.dtype())),
                                     value.device()));
    }

    [[nodiscard]] Tensor kernel_gradient(std::size_t input, const Tensor& g) const {
        const auto expression_of = [&](const Saved& operand) {
            const ops::LazyArray value = operand.value(info().name);
            return value ? Expression(value) : Expression();
        };
        const std::array<Expression, 3> operands{expression_of(saved[0]), expression_of(saved[1]),
                                                 expression_of(saved[2])};
        return Tensor(ops::make_lazy(
            Expression::gradient(function, static_cast<int>(input), g.value(), std::span(operands).first(inputs),
                                 expression_of(result), std::span(parameters.begin(), parameters.size())),
            g.device()));
    }
};

/// Operands of a call for its call record: numbers among the inputs are attributes.
class CallData {
  public:
    CallData(const FunctionInfo& row, std::span<const TensorOrScalar> inputs, std::span<const Scalar> parameters) {
        constexpr std::array<std::string_view, 3> where_names{"condition", "a", "b"}, operand_names{"a", "b", "c"};
        for (std::size_t i = 0; i < std::min(inputs.size(), inputs_.size()); ++i) {
            const std::string_view name = row.domain == ops::Domain::choose ? where_names[i]
                                          : row.inputs == 1                 ? "x"
                                                                            : operand_names[i];
            if (inputs[i].is_scalar()) attributes_[attribute_count_++] = {name, inputs[i].scalar()};
            else inputs_[input_count_++] = {name, inputs[i].tensor()};
        }
        for (std::size_t i = 0; i < std::min<std::size_t>(parameters.size(), 2); ++i)
            attributes_[attribute_count_++] = {i == 0 ? "p" : "q", parameters[i]};
    }
    [[nodiscard]] std::span<const CallInput> inputs() const { return {inputs_.data(), input_count_}; }
    [[nodiscard]] std::span<const CallAttribute> attributes() const { return {attributes_.data(), attribute_count_}; }

  private:
    std::array<CallInput, 3> inputs_;
    std::array<CallAttribute, 5> attributes_;
    std::size_t input_count_ = 0, attribute_count_ = 0;
};

/// A number as a tensor without axes, which is fused into the kernel that uses it.
Tensor constant(std::string_view function, const Scalar& number, DType dtype, const Device& device) {
    ops::require_fits(function, number, dtype);
    return Tensor(ops::make_lazy(Expression::constant(number, dtype), device));
}

/// Inputs of a call, converted to the types of its function.
class Operands {
  public:
    Operands(const FunctionInfo& row, std::string_view name, std::span<const TensorOrScalar> inputs,
             std::span<const Scalar> parameters) {
        const Tensor* first = nullptr;
        if (inputs.size() > converted_.size())
            throw ValueError(fmt::format("{}: expected {} tensors, got {}", name, row.inputs, inputs.size()));
        for (const TensorOrScalar& input : inputs) {
            if (input.is_scalar()) continue;
            if (!input.tensor().defined())
                throw ValueError(fmt::format("{}: expected {}, got an undefined one", name,
                                             row.inputs == 1   ? "a tensor"
                                             : row.inputs == 2 ? "2 tensors"
                                                               : "3 tensors"));
            if (first == nullptr) first = &input.tensor();
        }
        if (first == nullptr)
            throw ValueError(fmt::format("{}: expected a tensor among its inputs, got numbers", name));
        const std::size_t condition = row.domain == ops::Domain::choose ? 1 : 0;
        const std::optional<DType> common =
            common_type(row, name, inputs.subspan(std::min(condition, inputs.size())), parameters);
        count_ = inputs.size();
        if (row.domain == ops::Domain::compare && common && replace_out_of_range_comparison(inputs, *common)) return;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const bool converts = common && i >= condition;
            if (inputs[i].is_scalar())
                converted_[i] = constant(name, inputs[i].scalar(), converts ? *common : dtype_of(inputs[i].scalar()),
                                         first->device());
            else if (converts && inputs[i].tensor().dtype() != *common) {
                converted_[i] = inputs[i].tensor().to(*common);
                rounds_zero_dim_ = rounds_zero_dim_ || (is_16bit_float(*common) && inputs[i].tensor().rank() == 0);
            } else {
                operands_[i] = &inputs[i].tensor();
                continue;
            }
            operands_[i] = &converted_[i];
        }
    }
    [[nodiscard]] std::size_t size() const { return count_; }
    /// Returns whether a 0-d tensor, which does not promote the type, would be rounded to f16 or bf16.
    [[nodiscard]] bool rounds_zero_dim() const { return rounds_zero_dim_; }
    const Tensor& operator[](std::size_t i) const { return *operands_[i]; }
    [[nodiscard]] std::vector<Tensor> all() const {
        std::vector<Tensor> tensors;
        tensors.reserve(count_);
        for (std::size_t i = 0; i < count_; ++i) tensors.push_back(*operands_[i]);
        return tensors;
    }

  private:
    /// Replaces a comparison with a number outside of an integer type's range by one of 1 and 0, or of 0 and 1.
    bool replace_out_of_range_comparison(std::span<const TensorOrScalar> inputs, DType type) {
        if (!is_integer(type) || inputs.size() != 2) return false;
        const auto number = std::ranges::find_if(inputs, [](const TensorOrScalar& input) { return input.is_scalar(); });
        if (number == inputs.end() || number->scalar().fits(type)) return false;
        const bool above = number->scalar().to_double() > 0;
        for (std::size_t i = 0; i < 2; ++i) {
            const Tensor& tensor = inputs[i].is_scalar() ? inputs[1 - i].tensor() : inputs[i].tensor();
            converted_[i] = full(inputs[i].is_scalar() ? Shape{} : tensor.shape(),
                                 inputs[i].is_scalar() == above ? 1 : 0, {type, tensor.device()});
            operands_[i] = &converted_[i];
        }
        return true;
    }
    /// Type that the operands are converted to; none if they have one type, which the function supports.
    static std::optional<DType> common_type(const FunctionInfo& row, std::string_view name,
                                            std::span<const TensorOrScalar> inputs,
                                            std::span<const Scalar> parameters) {
        bool same_type = !inputs.empty() && !inputs[0].is_scalar();
        for (std::size_t i = 1; same_type && i < inputs.size(); ++i)
            same_type = !inputs[i].is_scalar() && inputs[i].tensor().dtype() == inputs[0].tensor().dtype();
        const DType type = same_type ? inputs[0].tensor().dtype() : DType::f32;
        if (row.domain == ops::Domain::logic) return DType::boolean;
        if (same_type && is_floating(type)) return std::nullopt;
        if (same_type && row.domain != ops::Domain::real && parameters.empty()) return std::nullopt;
        detail::Promotion promotion;
        try {
            for (const TensorOrScalar& input : inputs) promotion.add(input);
            for (const Scalar& parameter : parameters) promotion.add(parameter);
        } catch (const TypeError&) {
            std::string types;
            for (const TensorOrScalar& input : inputs)
                types += fmt::format("{}{}", types.empty() ? "" : ", ",
                                     name_of(input.is_scalar() ? dtype_of(input.scalar()) : input.tensor().dtype()));
            throw TypeError(
                fmt::format("{}: expected types with a common type, got {} (convert with .to(DType))", name, types));
        }
        const DType common = promotion.result().value_or(DType::f32);
        return row.domain == ops::Domain::real && !is_floating(common) ? DType::f32 : common;
    }

    std::array<Tensor, 3> converted_;
    std::array<const Tensor*, 3> operands_{};
    std::size_t count_ = 0;
    bool rounds_zero_dim_ = false;
};

/// The equivalent function of bools: sums and products are "or" and "and", as in PyTorch.
Function boolean_equivalent(Function function) {
    switch (function) {
        case Function::add:
        case Function::max:
            return Function::bitwise_or;
        case Function::mul:
        case Function::min:
            return Function::bitwise_and;
        case Function::bitwise_not:
            return Function::logical_not;
        default:
            return function;
    }
}

}  // namespace

Tensor operator/(Tensor x, Scalar p) {
    const detail::Factors factors = detail::factors_of(x.defined() ? x.dtype() : DType::f32, p.to_double());
    x = elementwise(Function::mul_scalar, {std::move(x)}, {factors.first}, "operator/");
    return factors.second == 1 ? x : elementwise(Function::mul_scalar, {std::move(x)}, {factors.second}, "operator/");
}

namespace {

/// x clamped at one bound; the gradient goes to x inside of the bound, and is shared by equal ones. NaN propagates.
Tensor clamp_one_side(const char* name, const Tensor& x, const Tensor& bound, bool below) {
    const FunctionCall call(name, {{"x", x}, {below ? "low" : "high", bound}});
    call.require_defined({"x", below ? "low" : "high"});
    return call.result(elementwise(below ? Function::max : Function::min, {x, bound}, {}, name));
}

bool is_nan(const Scalar& bound) { return std::isnan(bound.to_double()); }

/// Result for a NaN bound: NaN without gradient.
Tensor nan_without_gradient(const Tensor& x) {
    const auto nan = full({}, std::numeric_limits<double>::quiet_NaN(), {x.dtype(), x.device()});
    return where(x == x, nan, x);
}

Tensor clamp_one_side(const char* name, const Tensor& x, const Scalar& bound, bool below) {
    const FunctionCall call(name, {{"x", x}}, {{below ? "low" : "high", bound}});
    call.require_defined({"x"});
    if (is_floating(x.dtype()) && is_nan(bound)) return call.result(nan_without_gradient(x));
    if (!is_floating(x.dtype()) && !bound.is_floating()) {
        // A bound outside of an integer type's range has no effect.
        const bool no_effect = is_integer(x.dtype()) && !bound.fits(x.dtype()) && (bound.to_double() < 0) == below;
        if (no_effect) return call.result(elementwise(below ? Function::max : Function::min, {x, x}, {}, name));
        return call.result(elementwise(below ? Function::max : Function::min, {x, bound}, {}, name));
    }
    // No element is below or above NaN, and there is no gradient.
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const Scalar low = below ? bound : Scalar(nan), high = below ? Scalar(nan) : bound;
    return call.result(elementwise(Function::clamp, {x}, {low, high}, name));
}

Tensor clamp_one_side(const char* name, const Tensor& x, const TensorOrScalar& bound, bool below) {
    return bound.is_scalar() ? clamp_one_side(name, x, bound.scalar(), below)
                             : clamp_one_side(name, x, bound.tensor(), below);
}

}  // namespace

Tensor clamp(Tensor x, Scalar low, Scalar high) {
    if (x.defined() && is_floating(x.dtype()) && (is_nan(low) || is_nan(high))) {
        const FunctionCall call("clamp", {{"x", x}}, {{"low", low}, {"high", high}});
        return call.result(nan_without_gradient(x));
    }
    if (x.defined() && is_integer(x.dtype()) && !low.is_floating() && !high.is_floating() &&
        !(low.fits(x.dtype()) && high.fits(x.dtype()))) {
        const FunctionCall call("clamp", {{"x", x}}, {{"low", low}, {"high", high}});
        return call.result(clamp_max(clamp_min(x, low), high));
    }
    return elementwise(Function::clamp, {std::move(x)}, {low.to_double() > high.to_double() ? high : low, high});
}
Tensor clamp_min(const Tensor& x, const TensorOrScalar& low) { return clamp_one_side("clamp_min", x, low, true); }
Tensor clamp_max(const Tensor& x, const TensorOrScalar& high) { return clamp_one_side("clamp_max", x, high, false); }
Tensor clamp(const Tensor& x, const Tensor& low, const TensorOrScalar& high) {
    const FunctionCall call("clamp", {{"x", x}, {"low", low}, {"high", high.is_scalar() ? Tensor() : high.tensor()}});
    call.require_defined({"x", "low"});
    const Tensor within = clamp_max(clamp_min(x, low), high);
    if (high.is_scalar() || !any_requires_grad({x, low, high.tensor()})) return call.result(within);
    // Where the bounds are equal, the gradient goes to one of the three.
    const Tensor& upper = high.tensor();
    return call.result(where(low == upper, where(x < low, low, where(x > upper, upper, x)), within));
}
Tensor clamp(const Tensor& x, Scalar low, const Tensor& high) {
    const FunctionCall call("clamp", {{"x", x}, {"high", high}}, {{"low", low}});
    call.require_defined({"x", "high"});
    return call.result(clamp_max(clamp_min(x, low), high));
}

Tensor elementwise(Function function, std::span<const TensorOrScalar> inputs, std::span<const Scalar> parameters,
                   std::string_view name) {
    const bool with_number = function == Function::add_scalar || function == Function::mul_scalar;
    if (with_number && inputs.size() == 1 && parameters.size() == 1 && dtype_of(parameters[0]) == DType::boolean &&
        !inputs[0].is_scalar() && inputs[0].tensor().defined() && inputs[0].tensor().dtype() == DType::boolean) {
        const std::array<TensorOrScalar, 2> operands_pair{inputs[0], parameters[0]};
        return elementwise(function == Function::add_scalar ? Function::add : Function::mul, operands_pair, {}, name);
    }
    if (name.empty()) name = ops::info(function).name;
    const CallData data(ops::info(function), inputs, parameters);
    const FunctionCall call(ops::info(function).name, name, data.inputs(), data.attributes());
    const Operands operands(ops::info(function), name, inputs, parameters);
    const std::size_t count = operands.size();
    // The 0-d tensor keeps its value, like a scalar: everything is computed in f32, and only the result is rounded.
    if (operands.rounds_zero_dim()) {
        const DType type = operands[count - 1].dtype();
        std::vector<TensorOrScalar> upcast_inputs(inputs.begin(), inputs.end());
        for (TensorOrScalar& input : upcast_inputs)
            if (!input.is_scalar() && input.tensor().dtype() != DType::boolean)
                input = input.tensor().to(compute_type(type));
        const Tensor upcast_result = elementwise(function, upcast_inputs, parameters, name);
        return call.result(upcast_result.dtype() == DType::boolean ? upcast_result : upcast_result.to(type));
    }
    if (count > 0 && operands[count - 1].dtype() == DType::boolean) function = boolean_equivalent(function);
    const FunctionInfo& row = ops::info(function);
    std::array<Expression, 3> expressions;
    bool needs_graph = false;
    const ops::FormulaTrace* const formula = ops::FormulaTrace::current();
    for (std::size_t i = 0; i < count; ++i) {
        if (formula != nullptr) formula->require_own(operands[i].value());
        expressions[i] = Expression(operands[i].value());
        needs_graph = needs_graph || operands[i].requires_grad();
    }
    const Expression expression = Expression::apply(function, std::span(expressions).first(count), parameters, name);
    const ops::LazyArray result = ops::make_lazy(expression, operands[0].device());
    const detail::GradientRules& rules = detail::gradient_rules(function);
    if (!rules.any || !needs_graph || !grad_enabled()) return call.result(Tensor(result));

    Rule rule{.function = function, .inputs = count, .parameters = {parameters.begin(), parameters.end()}};
    for (std::size_t i = 0; i < count; ++i) {
        rule.shapes[i] = operands[i].shape();
        if (!operands[i].requires_grad()) continue;
        for (std::size_t other = 0; other < count; ++other)
            if (rules.inputs[i].needs_input[other]) rule.saved[other] = Saved(operands[other]);
        if (rules.inputs[i].needs_result) rule.result = Saved::result(result);
    }
    const Tensor out = attach_backward(row.name, operands.all(), result, std::move(rule),
                                       rules.decomposed ? RuleKind::differentiable : RuleKind::opaque);
    if (row.inputs == 1 && row.has_gradient)
        state_of(out)->node->activation =
            detail::Activation{.function = function, .parameters = {parameters.begin(), parameters.end()}};
    return call.result(out);
}

}  // namespace declivity
