#include <declivity/optim/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <list>
#include <set>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "optimizer_state.hpp"
#include "runtime/capture.hpp"
#include "ops/engine/access.hpp"

namespace declivity::optim {

Parameters::Parameters(const std::vector<NamedTensor>& named) {
    for (const auto& [name, tensor] : named) {
        names_.push_back(name);
        tensors_.push_back(tensor);
    }
}

Tensor& Update::operator[](std::string_view state) {
    const auto found = std::ranges::find(states_, state, &NamedTensor::name);
    if (found == states_.end()) {
        std::string names;
        for (const NamedTensor& tensor : states_) names += (names.empty() ? "" : ", ") + tensor.name;
        throw ValueError(fmt::format("{}: expected the name of a state tensor ({}), got '{}'", optimizer_,
                                     names.empty() ? "there is none" : names, state));
    }
    return found->tensor;
}

Optimizer::Optimizer(std::string_view name) : state_(std::make_shared<State>()) { state_->name = name; }
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

const std::type_info& Optimizer::capture_safe() const { return replayable(); }
const std::type_info& Optimizer::replayable() const { return typeid(void); }

Optimizer::State& Optimizer::checked_state(std::string_view function) const {
    if (!state_)
        throw ValueError(fmt::format("Optimizer::{}: expected an optimizer, got one that was moved from", function));
    return *state_;
}

Optimizer::Group& Optimizer::group_of(std::string_view function, std::size_t index) const {
    auto& groups = checked_state(function).groups;
    if (index >= groups.size())
        throw ValueError(
            fmt::format("Optimizer::{}: expected a group below {}, got {}", function, groups.size(), index));
    return groups[index];
}

std::size_t Optimizer::groups() const { return checked_state("groups").groups.size(); }
const std::vector<Tensor>& Optimizer::parameters(std::size_t group) const {
    return group_of("parameters", group).parameters;
}
double Optimizer::learning_rate(std::size_t group) const { return group_of("learning_rate", group).rate; }
double Optimizer::initial_learning_rate(std::size_t group) const {
    return group_of("initial_learning_rate", group).initial_rate;
}

namespace {

void check_rate(std::string_view name, double rate) {
    if (!(rate >= 0) || !std::isfinite(rate))
        throw ValueError(fmt::format("{}: expected a learning rate of at least 0, got {}", name, rate));
}

/// Names of a group's parameters: the given ones, or numbers starting at `first`. @param seen names of other groups
std::vector<std::string> names_of(std::string_view optimizer, const Parameters& parameters, std::size_t first,
                                  std::set<std::string>& seen) {
    std::vector<std::string> names = parameters.names();
    for (std::size_t i = names.size(); i < parameters.tensors().size(); ++i) names.push_back(std::to_string(first + i));
    for (const std::string& name : names)
        if (!seen.insert(name).second)
            throw ValueError(fmt::format("{}: expected unique parameter names, got '{}' twice", optimizer, name));
    return names;
}

}  // namespace

void Optimizer::set_learning_rate(double rate, std::size_t group) {
    check_rate("set_learning_rate", rate);
    Group& target = group_of("set_learning_rate", group);
    if (target.rate == rate) return;
    ops::fill(ops::sliced(target.scalars.view(), 0, 0, 1), rate);
    target.rate = rate;
}

void Optimizer::add(const Parameters& added, double learning_rate, std::vector<Slot> slots) {
    const std::string_view name = checked_state("add_group").name;
    const std::vector<Tensor>& parameters = added.tensors();
    check_rate(name, learning_rate);
    if (parameters.empty())
        throw ValueError(fmt::format("{}: expected at least one parameter in a group, got none", name));
    std::set<const void*> seen;
    std::set<std::string> names;
    std::size_t count = 0;
    for (const Group& group : state_->groups) {
        for (const Tensor& parameter : group.parameters) seen.insert(state_of(parameter).get());
        names.insert(group.names.begin(), group.names.end());
        count += group.parameters.size();
    }
    for (const Tensor& parameter : parameters) {
        const auto refuse = [&](std::string_view what) {
            throw ValueError(fmt::format("{}: expected leaf tensors, got {} as parameter {}", name, what,
                                         &parameter - parameters.data()));
        };
        if (!parameter.defined()) refuse("an undefined tensor");
        if (!parameter.is_leaf()) refuse("the result of a function");
        ops::require_real(name, "a parameter", parameter.dtype());
        ops::require_alike(name, "the first parameter", parameters[0].view(), "another", parameter.view());
        ops::require_dense(name, "parameter", parameter.view());
        if (!seen.insert(state_of(parameter).get()).second)
            throw ValueError(fmt::format("{}: expected each parameter once, got one of shape {} twice", name,
                                         parameter.shape().str()));
    }
    std::vector<std::string> parameter_names = names_of(name, added, count, names);
    const Scope scope("optimizer");  // determines the memory scope
    const DType compute = compute_type(parameters[0].dtype());
    const bool is_16bit = is_16bit_float(parameters[0].dtype());
    Group group{
        .parameters = parameters,
        .names = std::move(parameter_names),
        .slot_names = std::move(slots),
        .slots = {},
        .scalars = zeros({kSteps + static_cast<std::int64_t>(parameters.size())}, {compute, parameters[0].device()}),
        .dtype = parameters[0].dtype(),
        .initial_rate = learning_rate,
        .rate = -1,
        .tensors = ops::MultiTensor(2)};
    for (const Slot& slot : group.slot_names) {
        group.slots.emplace_back();
        for (const Tensor& parameter : parameters)
            group.slots.back().push_back(full(parameter.shape(), slot.initial, {compute, parameter.device()}));
    }
    for (const Tensor& parameter : parameters) {
        group.shapes.push_back(parameter.shape());
        if (is_16bit) group.masters.push_back(parameter.detach().to(compute).clone());
    }
    group.tensors = ops::MultiTensor(group.roles());
    if (!state_->own_guard.defined()) state_->own_guard = zeros({2}, {DType::i32, parameters[0].device()});
    if (!state_->guard.defined()) state_->guard = state_->own_guard;
    state_->groups.push_back(std::move(group));
    set_learning_rate(learning_rate, state_->groups.size() - 1);
}

/// Roles are the parameters, their gradients, the state tensors, and the master copies of 16-bit parameters.
void Optimizer::make_formula(std::size_t index) {
    Group& group = state_->groups[index];
    const DType dtype = group.dtype, compute = compute_type(dtype);
    const ops::FormulaTrace trace(state_->name, group.scalars.device());
    const auto role = [&](std::size_t number, DType type) { return Tensor(trace.role(number, type)); };
    Update x(state_->name);
    x.parameter = role(0, dtype);
    x.gradient = role(1, dtype).to(compute);
    const bool is_16bit = !group.masters.empty();
    if (is_16bit) {
        const Tensor master = role(group.roles() - 1, compute);
        // A parameter written since the last step takes precedence over its master copy.
        x.parameter = where(master.to(dtype) == x.parameter, master, x.parameter.to(compute));
    }
    x.lr = Tensor(trace.number(0, compute));
    x.step = Tensor(trace.tensor_number(kSteps, compute));
    for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
        x.states_.push_back({group.slot_names[slot].name, role(2 + slot, compute)});
    const Tensor parameter = x.parameter;
    const std::vector<NamedTensor> states = x.states_;
    update(index, x);
    std::vector<ops::FormulaOutput> outputs;
    const auto add_output = [&](std::size_t number, std::string_view what, const Tensor& updated,
                                const Tensor& previous) {
        if (!updated.defined() || !(updated.shape() == previous.shape()) || updated.dtype() != previous.dtype())
            throw ValueError(fmt::format(
                "{}: expected a new {} of the parameter's shape, of {}, got {}", state_->name, what, name_of(compute),
                !updated.defined()                    ? "an undefined tensor"
                : updated.dtype() != previous.dtype() ? fmt::format("one of {}", name_of(updated.dtype()))
                : updated.shape().empty()
                    ? "a scalar, which depends only on numbers, x.lr and x.step"
                    : fmt::format("a tensor from outside of the formula, of shape {}", updated.shape().str())));
        if (state_of(updated.value()) != state_of(previous.value())) outputs.push_back({number, updated.value()});
    };
    add_output(is_16bit ? group.roles() - 1 : 0, "parameter", x.parameter, parameter);
    if (is_16bit) {
        if (outputs.empty()) outputs.push_back({group.roles() - 1, x.parameter.value()});
        outputs.push_back({0, x.parameter.to(dtype).value()});
    }
    for (std::size_t slot = 0; slot < states.size(); ++slot)
        add_output(2 + slot, fmt::format("'{}'", states[slot].name), x.states_[slot].tensor, states[slot].tensor);
    if (outputs.empty())
        throw ValueError(fmt::format(
            "{}: expected update() to assign a new parameter (x.parameter = ...), computed by elementwise functions, "
            "got none",
            state_->name));
    group.formula.emplace(trace, outputs);
}

/// The part of a group's step that can fail. @return whether any parameter has a gradient @param writes held until the
/// launch
bool Optimizer::prepare_step(std::size_t index, std::vector<BufferWrite>& writes) {
    Group& group = state_->groups[index];
    std::vector<std::vector<ops::View>> roles(group.roles());
    for (auto& role : roles) role.reserve(group.parameters.size());
    std::vector<std::int64_t> indices;  // indices of the parameters that have a gradient
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
        const Tensor& parameter = group.parameters[i];
        const Tensor gradient = parameter.grad();
        if (!gradient.defined()) continue;
        const bool unchanged = parameter.dtype() == group.dtype && parameter.shape() == group.shapes[i];
        if (!unchanged || !(parameter.device() == group.scalars.device()))
            throw ValueError(
                fmt::format("{}: expected parameters unchanged since the optimizer was created, '{}' of {} {} on '{}', "
                            "got {} {} on "
                            "'{}'; convert and move a model (Module::to) before creating its optimizer",
                            state_->name, group.names[i], name_of(group.dtype), group.shapes[i].str(),
                            group.scalars.device().name(), name_of(parameter.dtype()), parameter.shape().str(),
                            parameter.device().name()));
        const ops::View& parameter_view = parameter.view();
        const ops::View gradient_view = gradient.dense_view();
        roles[0].push_back(parameter_view);
        // The kernel requires that no two roles overlap.
        roles[1].push_back(ops::may_overlap(parameter_view, gradient_view) ? gradient.clone().view() : gradient_view);
        for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
            roles[2 + slot].push_back(group.slots[slot][i].view());
        writes.emplace_back(parameter_view.buffer);
        if (!group.masters.empty()) {
            roles.back().push_back(group.masters[i].view());
            writes.emplace_back(roles.back().back().buffer);
        }
        indices.push_back(static_cast<std::int64_t>(i));
    }
    if (roles[0].empty()) return false;
    if (!group.formula || capture_safe() != typeid(*this)) make_formula(index);
    group.tensors.set(roles, indices);
    return true;
}

void Optimizer::step() {
    (void)checked_state("step");
    const Scope scope("optimizer");
    const NoGrad no_grad;
    if (Capture* const capture = Capture::current())
        capture->guard([state = std::weak_ptr(state_), groups = groups(), guard = state_->guard] {
            const auto live_state = state.lock();
            return live_state && live_state->groups.size() == groups && state_of(live_state->guard) == state_of(guard);
        });
    if (state_->is_guarded()) {  // no group is changed if the gradients of another one are not finite
        std::vector<Tensor> parameters;
        for (const Group& group : state_->groups)
            parameters.insert(parameters.end(), group.parameters.begin(), group.parameters.end());
        state_->check_gradients(parameters, state_->guard);
    }
    // All groups are checked before the first launch: a step that throws leaves every group unchanged.
    std::vector<BufferWrite> writes;
    std::list<ops::ReleaseTensors> gradients;  // kept alive until the launches
    std::vector<Group*> active_groups;
    for (std::size_t index = 0; index < state_->groups.size(); ++index) {
        gradients.emplace_back(state_->groups[index].tensors);
        if (prepare_step(index, writes)) active_groups.push_back(&state_->groups[index]);
    }
    for (Group* const group : active_groups) {
        ops::count_step(group->steps(), group->tensors.indices(), state_->guard.view());
        group->formula->launch(group->tensors, group->scalars.view(), state_->guard.view());
    }
}

void Optimizer::zero_grad() {
    for (Group& group : checked_state("zero_grad").groups)
        for (Tensor& parameter : group.parameters) parameter.zero_grad();
}

void Optimizer::set_guard(const Tensor& guard) {
    if (!guard.defined()) {
        State& state = checked_state("set_guard");
        state.guard = state.own_guard;
        return;
    }
    ops::require_shape("Optimizer::set_guard", "the guard", guard.view(), {2});
    if (guard.dtype() != DType::i32)
        throw TypeError(fmt::format("Optimizer::set_guard: expected i32, got {}", name_of(guard.dtype())));
    checked_state("set_guard").guard = guard;
}

}  // namespace declivity::optim
