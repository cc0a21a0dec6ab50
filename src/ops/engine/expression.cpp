#include "expression.hpp"

#include <cmath>
#include <optional>
#include <unordered_map>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "expression_node.hpp"
#include "lazy_array_state.hpp"

namespace declivity::ops {
namespace {

/// Functions of special.clh are called s_sin, s_erfinv, ...
constexpr bool is_special(std::string_view text) {
    for (std::size_t i = text.find("s_"); i != std::string_view::npos; i = text.find("s_", i + 1))
        if (i == 0 || text[i - 1] == ' ' || text[i - 1] == '(' || text[i - 1] == '-') return true;
    return false;
}
/// Costly functions of math.clh are called d_exp, d_log, ...
constexpr bool is_costly(std::string_view text) {
    return text.find("d_") != std::string_view::npos || is_special(text);
}

constexpr GradientForm form_of(std::string_view text) {
    if (text.empty()) return GradientForm::none;
    if (text == "g") return GradientForm::g;
    if (text == "-g") return GradientForm::minus_g;
    if (text == "g * a") return GradientForm::g_times_a;
    if (text == "g * b") return GradientForm::g_times_b;
    return text == "g * p" ? GradientForm::g_times_p : GradientForm::other;
}

constexpr FunctionInfo with_what_follows(FunctionInfo row) {
    row.costly = is_costly(row.value);
    row.special = is_special(row.value);
    for (const std::string_view name :
         {"d_floor_divide(", "d_remainder(", "d_fmod(", "d_pow(", "d_rounded_", "d_shift_"})
        row.divides = row.divides || row.value.find(name) != std::string_view::npos;
    for (std::size_t i = 0; i < row.gradient.size(); ++i) {
        const std::string_view text = row.gradient[i];
        FunctionInfo::Gradient& of = row.gradient_info[i];
        of.form = form_of(text);
        of.costly = is_costly(text);
        of.needs_result = mentions(text, 'y');
        for (std::size_t other = 0; other < static_cast<std::size_t>(row.inputs); ++other)
            of.needs_input[other] = mentions(text, row.inputs == 1 ? 'x' : static_cast<char>('a' + other));
        row.has_gradient = row.has_gradient || !text.empty();
    }
    return row;
}

#define DECLIVITY_FUNCTION(name, domain, inputs, parameters, value, ...) \
    with_what_follows(FunctionInfo{#name, Domain::domain, inputs, parameters, value, {__VA_ARGS__}}),
constexpr FunctionInfo kFunctions[] = {
#include <declivity/ops/elementwise_table.def>
};
#undef DECLIVITY_FUNCTION

/// The device of the first view or value in a tree.
std::optional<Device> device_of(const Expression& expression) {
    if (!expression) return std::nullopt;
    const ExpressionNode& node = *expression.node();
    if (node.kind == ExpressionNode::Kind::view) return node.view.device();
    if (node.kind == ExpressionNode::Kind::value) return node.source.device();
    if (node.kind == ExpressionNode::Kind::random) return node.view.device();
    for (const Expression& input : node.inputs)
        if (const auto device = device_of(input)) return device;
    return std::nullopt;
}

void check_types(const FunctionInfo& function, std::string_view name, std::span<const Expression> inputs) {
    const auto wrong = [&](std::string_view expected, std::string_view advice = "") {
        std::string got;
        for (const Expression& input : inputs)
            got += fmt::format("{}{}", got.empty() ? "" : ", ", name_of(input.dtype()));
        throw TypeError(fmt::format("{}: expected {}, got {}{}", name, expected, got, advice));
    };
    const std::size_t first = function.domain == Domain::choose ? 1 : 0;
    for (std::size_t i = first; i < inputs.size(); ++i)
        if (inputs[i].dtype() != inputs[first].dtype()) wrong("tensors of one type (convert with .to(DType))");
    switch (function.domain) {
        case Domain::real:
            if (!is_floating(inputs[0].dtype())) wrong("f32, f64, f16 or bf16", " (convert with .to(DType::f32))");
            break;
        case Domain::number:
        case Domain::compare:
            if (inputs[0].dtype() == DType::boolean && function.domain == Domain::number) wrong("numbers");
            break;
        case Domain::integer:
            if (is_floating(inputs[0].dtype())) wrong("integers or bool");
            break;
        case Domain::shift:
            if (!is_integer(inputs[0].dtype())) wrong("integers");
            break;
        case Domain::choose:
            if (inputs[0].dtype() != DType::boolean) wrong("a condition of bool", " (compare, as in x > 0)");
            break;
        case Domain::logic:
            if (inputs[0].dtype() != DType::boolean) wrong("bool");
            break;
    }
}

}  // namespace

namespace {

/// Constructs the node in place: nodes are large.
template <class Fill>
std::shared_ptr<const ExpressionNode> make_node(const Fill& fill) {
    auto node = std::make_shared<ExpressionNode>();
    fill(*node);
    return node;
}

}  // namespace

const FunctionInfo& info(Function function) { return kFunctions[static_cast<std::size_t>(function)]; }

Expression::Expression(const View& view)
    : node_(make_node([&](ExpressionNode& node) {
          node.kind = ExpressionNode::Kind::view;
          node.dtype = view.dtype;
          node.shape = view.shape;
          node.view = view;
      })) {}

DType working_type(const ExpressionNode& node) {
    const bool converts =
        node.kind == ExpressionNode::Kind::apply && node.dtype == DType::boolean && !node.inputs.empty();
    return converts ? node.inputs.back().dtype() : node.dtype;
}

void require_fits(std::string_view function, const Scalar& value, DType type) {
    if (type != DType::boolean && !value.fits(type))
        throw ValueError(
            fmt::format("{}: expected a whole number that fits into {}, got {}", function, name_of(type), value.str()));
}

Expression::Expression(const LazyArray& value)
    : node_(make_node([&](ExpressionNode& node) {
          node.dtype = value.dtype();
          node.shape = value.shape();
          if (const std::optional<Scalar>& constant = state_of(value)->constant) {
              node.kind = ExpressionNode::Kind::constant;
              node.value = *constant;
              return;
          }
          node.kind = value.computed() ? ExpressionNode::Kind::view : ExpressionNode::Kind::value;
          if (node.kind == ExpressionNode::Kind::view) node.view = value.view();
          else node.source = value;
      })) {}

Expression with_inputs(const ExpressionNode& node, std::span<const Expression> inputs) {
    auto other = std::make_shared<ExpressionNode>(node);
    other->inputs = {inputs.begin(), inputs.end()};
    return Expression(std::move(other));
}

namespace {

/// @param made nodes that were replaced already
Expression replaced(const Expression& expression, const std::function<Expression(const ExpressionNode&)>& leaf,
                    std::unordered_map<const ExpressionNode*, Expression>& cache) {
    if (!expression) return expression;
    const ExpressionNode& node = *expression.node();
    if (const auto found = cache.find(&node); found != cache.end()) return found->second;
    Expression out = expression;
    if (node.inputs.empty()) {
        if (Expression other = leaf(node)) out = std::move(other);
    } else {
        std::vector<Expression> inputs;
        for (const Expression& input : node.inputs) inputs.push_back(replaced(input, leaf, cache));
        out = with_inputs(node, inputs);
    }
    return cache.emplace(&node, out).first->second;
}

}  // namespace

Expression with_leaves(const Expression& expression, const std::function<Expression(const ExpressionNode&)>& leaf) {
    std::unordered_map<const ExpressionNode*, Expression> cache;
    return replaced(expression, leaf, cache);
}

Expression with_result(const Expression& expression, const Expression& result) {
    return with_leaves(expression, [&](const ExpressionNode& node) {
        return node.kind == ExpressionNode::Kind::operator_result ? result : Expression();
    });
}

Expression Expression::constant(Scalar value, DType dtype) {
    require_fits("constant", value, dtype);
    return Expression(std::make_shared<ExpressionNode>(
        ExpressionNode{.kind = ExpressionNode::Kind::constant, .dtype = dtype, .shape = {}, .value = value}));
}

Expression Expression::operator_result(DType dtype, const Shape& shape) {
    return Expression(std::make_shared<ExpressionNode>(
        ExpressionNode{.kind = ExpressionNode::Kind::operator_result, .dtype = dtype, .shape = shape}));
}

Expression Expression::apply(Function function, std::span<const Expression> inputs, std::span<const Scalar> parameters,
                             std::string_view name) {
    const FunctionInfo& row = info(function);
    if (name.empty()) name = row.name;
    if (inputs.size() != static_cast<std::size_t>(row.inputs) ||
        parameters.size() != static_cast<std::size_t>(row.parameters))
        throw ValueError(fmt::format("{}: expected {} inputs and {} parameters, got {} and {}", name, row.inputs,
                                     row.parameters, inputs.size(), parameters.size()));
    check_types(row, name, inputs);
    Shape shape = inputs[0].shape();
    const auto first = device_of(inputs[0]);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        shape = broadcast_shapes(name, shape, inputs[i].shape());
        if (const auto other = device_of(inputs[i]); first && other) require_same_device(name, *first, *other);
    }
    const DType type = inputs.back().dtype();
    for (const Scalar& parameter : parameters) {
        // x - 1 of an unsigned type adds -1, modulo 2^bits.
        const bool wraps = function == Function::add_scalar && !dtype_info(type).is_signed && (-parameter).fits(type);
        if (!wraps) require_fits(name, parameter, type);
    }
    // NVIDIA's compiler (580.159) computes 32768 for the negation of -32768 if the result is widened in the same
    // kernel. The factor is a kernel argument, so that the compiler emits no negation.
    if (function == Function::neg && type == DType::i16)
        return apply(Function::mul_scalar, inputs, std::array{Scalar(-1)}, name);
    const DType dtype =
        row.domain == Domain::compare || row.domain == Domain::logic ? DType::boolean : inputs.back().dtype();
    return Expression(make_node([&](ExpressionNode& node) {
        node.kind = ExpressionNode::Kind::apply;
        node.dtype = dtype;
        node.shape = shape;
        node.function = function;
        node.inputs = {inputs.begin(), inputs.end()};
        node.parameters = {parameters.begin(), parameters.end()};
    }));
}

Expression Expression::gradient(Function function, int input, const Expression& result_gradient,
                                std::span<const Expression> inputs, const Expression& result,
                                std::span<const Scalar> parameters) {
    const FunctionInfo& row = info(function);
    const FunctionInfo::Gradient& of = row.gradient_info[static_cast<std::size_t>(input)];
    return Expression(make_node([&](ExpressionNode& node) {
        node.kind = ExpressionNode::Kind::gradient;
        node.dtype = result_gradient.dtype();
        node.shape = result_gradient.shape();
        node.function = function;
        node.input = input;
        node.inputs.push_back(result_gradient);
        node.parameters = {parameters.begin(), parameters.end()};
        for (std::size_t other = 0; other < static_cast<std::size_t>(row.inputs); ++other)
            node.inputs.push_back(of.needs_input[other] ? inputs[other] : Expression());
        node.inputs.push_back(of.needs_result ? result : Expression());
    }));
}

Expression Expression::cast(const Expression& from, DType to) {
    if (from.dtype() == to) return from;
    return Expression(std::make_shared<ExpressionNode>(
        ExpressionNode{.kind = ExpressionNode::Kind::cast, .dtype = to, .shape = from.shape(), .inputs = {from}}));
}

const Shape& Expression::shape() const { return node_->shape; }
DType Expression::dtype() const { return node_->dtype; }

}  // namespace declivity::ops
