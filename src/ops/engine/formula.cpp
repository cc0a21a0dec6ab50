#include "formula.hpp"

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "elementwise_plan.hpp"
#include "elementwise_source.hpp"
#include "lazy_array_state.hpp"
#include "ops/support/guard.hpp"
#include "ops/support/scratch.hpp"

namespace declivity::ops {
namespace {

using Node = ExpressionNode;

thread_local const FormulaTrace* current_trace = nullptr;

// Kernel arguments have 1024 bytes: 8 memory objects and 3 tables of 16 bytes, and numbers of 8.
constexpr std::size_t kFormulaNumbers = 96;
constexpr std::size_t kFormulaNodes = 200;  // structure keys store a node in one byte

/// More than one element, to distinguish it from a number.
Shape of_elements() { return {2}; }

LazyArray placeholder_array(int placeholder_id, const Shape& shape, DType dtype, const Device& device) {
    require_supported(device, dtype);
    auto state = std::make_shared<LazyArrayState>(device, dtype, shape);
    state->placeholder = placeholder_id;
    return lazy_array_of(std::move(state));
}

[[noreturn]] void refuse(std::string_view name, std::string_view what) {
    throw ValueError(fmt::format(
        "{}: expected a formula of elementwise functions of its arguments and of numbers, got {} in it", name, what));
}

/// Converts a formula to expressions whose leaves represent roles and numbers.
class Description {
  public:
    explicit Description(const FormulaTrace& trace) : trace_(trace) {}

    Expression of(const Expression& expression) {
        if (!expression) return expression;
        const Node* node = expression.node().get();
        if (const auto found = nodes_.find(node); found != nodes_.end()) return found->second;
        retained_.push_back(expression);  // keeps the address unique
        return nodes_.emplace(node, converted(expression)).first->second;
    }

  private:
    Expression converted(const Expression& expression) {
        const Node& node = *expression.node();
        switch (node.kind) {
            case Node::Kind::value:
                return of(*state_of(node.source));
            case Node::Kind::constant:
                return expression;
            case Node::Kind::apply:
            case Node::Kind::gradient:
            case Node::Kind::cast:
                break;
            case Node::Kind::random:
                refuse("random numbers");
            default:
                refuse("a tensor from outside");
        }
        std::vector<Expression> inputs;
        for (const Expression& input : node.inputs) inputs.push_back(of(input));
        return with_inputs(node, inputs);
    }

    Expression of(const LazyArrayState& state) {
        if (state.placeholder >= 0) {
            Expression& leaf = leaves_[state.placeholder];
            if (!leaf)
                leaf = Expression(View{.buffer = {},
                                       .offset = state.placeholder,
                                       .dtype = state.dtype,
                                       .shape = state.shape,
                                       .strides = dense_strides(state.shape)});
            return leaf;
        }
        if (state.computed || state.is_opaque()) refuse("a tensor from outside");
        return of(state.expression);
    }

    [[noreturn]] void refuse(std::string_view what) const { ops::refuse(trace_.name(), what); }

    const FormulaTrace& trace_;
    std::unordered_map<const Node*, Expression> nodes_;
    std::unordered_map<int, Expression> leaves_;
    std::vector<Expression> retained_;
};

}  // namespace

FormulaTrace::FormulaTrace(std::string_view name, const Device& device)
    : name_(name), device_(device), before_(std::exchange(current_trace, this)) {}
FormulaTrace::~FormulaTrace() { current_trace = before_; }

const FormulaTrace* FormulaTrace::current() noexcept { return current_trace; }

void FormulaTrace::require_own(const LazyArray& value) const {
    const bool own = !value.computed() && (value.shape().empty() || value.shape() == of_elements()) &&
                     (state_of(value)->placeholder >= 0 || !state_of(value)->is_opaque());
    if (!own) refuse(name_, fmt::format("a tensor from outside, of shape {},", value.shape().str()));
}

void FormulaTrace::refuse_later() {
    throw ValueError(
        "Optimizer::update: expected its arguments, and values computed from them, to be used within it only; got one "
        "used later, when it has no elements");
}

void FormulaTrace::refuse_elements(std::string_view name) {
    throw ValueError(
        fmt::format("{}: expected a formula of elementwise functions, whose results are assigned; got one that needs "
                    "elements or shapes (a sum, a matrix product, reshape, an in-place write, item(), ...), which it "
                    "does not have",
                    name));
}

LazyArray FormulaTrace::role(std::size_t role, DType dtype) const {
    return placeholder_array(formula_role(role), of_elements(), dtype, device_);
}
LazyArray FormulaTrace::number(std::size_t index, DType dtype) const {
    return placeholder_array(formula_number(index), {}, dtype, device_);
}

LazyArray FormulaTrace::tensor_number(std::size_t first, DType dtype) const {
    return placeholder_array(formula_tensor_number(first), {}, dtype, device_);
}

struct Formula::State {
    std::string name;
    std::vector<Expression> roots;  // own the nodes
    Steps steps{std::pmr::get_default_resource()};
    ElementwisePlan plan{std::pmr::get_default_resource()};
    std::vector<StoredRole> stored;
    std::string form;  // key of what the kernel's text depends on besides the structure
    std::optional<std::pair<std::size_t, Kernel>> kernel;  // the last one, with the size of its work-groups
    double flops = 0, accesses = 0;
};

Formula::Formula(const FormulaTrace& trace, const std::vector<FormulaOutput>& outputs)
    : state_(std::make_unique<State>()) {
    State& state = *state_;
    state.name = trace.name();
    Description description(trace);
    for (const FormulaOutput& output : outputs) state.roots.push_back(description.of(Expression(output.value)));
    state.steps = steps_of(std::span<const Expression>(state.roots));
    state.plan.sizes = of_elements();
    state.plan.operands.emplace_back();
    for (std::size_t at = 0; at < state.steps.nodes.size(); ++at) {
        const Node& node = *state.steps.nodes[at];
        if (node.kind == Node::Kind::view) {
            state.plan.operands.push_back({node.view, node.view.strides});
            state.form += fmt::format("{} ", node.view.offset);
            state.accesses += node.shape.empty() ? 0 : 1;
        } else {
            state.flops += node.shape.empty() ? 0 : 1;
        }
        append_numbers_of(node, state.plan);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto at = static_cast<std::size_t>(state.steps.find(state.roots[i]));
        state.stored.push_back({outputs[i].role, at, state.roots[i].dtype()});
        state.form += fmt::format("{}={} ", outputs[i].role, at);
        state.accesses += 1;
    }
    if (state.steps.nodes.size() > kFormulaNodes || state.plan.numbers.size() > kFormulaNumbers)
        throw ValueError(fmt::format("{}: expected a formula of at most {} functions and {} numbers, got {} and {}",
                                     state.name, kFormulaNodes, kFormulaNumbers, state.steps.nodes.size(),
                                     state.plan.numbers.size()));
}
Formula::~Formula() = default;
Formula::Formula(Formula&&) noexcept = default;
Formula& Formula::operator=(Formula&&) noexcept = default;

void Formula::launch(const MultiTensor& tensors, const View& numbers, const View& guard) const {
    State& state = *state_;
    const Device device = tensors.device();
    require_floating("formula", "numbers", numbers);
    require_dense("formula", "numbers", numbers);
    require_guard("formula", guard, numbers);
    require_same_device("formula", device, numbers.device());
    const KernelStyle style = device.kernel_style();
    const auto make = [&](std::size_t items) {
        if (state.kernel && state.kernel->first == items) return state.kernel->second;
        const auto specification = [&] {
            KernelSpec spec = formula_specification(state.steps, state.plan, device, style, state.stored);
            spec.defines.set("ROLES", static_cast<std::int64_t>(tensors.roles()));
            spec.defines.set("GROUP", static_cast<std::int64_t>(items));
            return spec;
        };
        const std::string form = fmt::format("formula {} {} {} ", items, tensors.roles(), state.form);
        state.kernel.emplace(items, kernel_of_structure(form, state.steps, state.plan, device, specification));
        return state.kernel->second;
    };
    Scratch<2048> scratch;
    std::pmr::vector<Argument> further(scratch.memory());
    further.reserve(2 + state.plan.numbers.size());
    further.emplace_back(numbers.argument());
    further.emplace_back(guard.argument());
    append_numbers(state.plan, further);
    const WorkScope work(state.name, tensors.work(state.flops, state.accesses));
    tensors.launch(make, further);
}

}  // namespace declivity::ops
