#include <declivity/optim/optimizer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <declivity/ops/clip.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "runtime/recorder.hpp"

namespace declivity::optim {

struct Optimizer::Group {
    std::vector<Tensor> parameters;
    std::vector<std::string> slot_names;
    std::vector<std::vector<Tensor>> slots;  // by name, then parameter
    std::vector<Tensor> masters = {};  // of parameters of f16 and bf16 in f32, of which they are the rounded values
    Tensor progress;                   // learning rate and steps, see ops/sgd.hpp
    DType dtype = {};                  // of the parameters
    double initial_rate = 0, rate = 0;
};

struct Optimizer::State {
    std::vector<Group> groups;
    Tensor guard;
};

Optimizer::Optimizer() : state_(std::make_shared<State>()) {}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

const std::type_info& Optimizer::replayable() const { return typeid(void); }

Optimizer::State& Optimizer::checked_state(std::string_view function) const {
    if (!state_)
        throw ValueError(fmt::format("Optimizer::{}: wants an optimizer, got one that was moved from", function));
    return *state_;
}

Optimizer::Group& Optimizer::group_of(std::string_view function, std::size_t index) const {
    auto& groups = checked_state(function).groups;
    if (index >= groups.size())
        throw ValueError(fmt::format("Optimizer::{}: wants a group below {}, got {}", function, groups.size(), index));
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

void check_rate(double rate) {
    if (!(rate >= 0) || !std::isfinite(rate))
        throw ValueError(fmt::format("Optimizer: wants a learning rate of at least 0, got {}", rate));
}

}  // namespace

void Optimizer::set_learning_rate(double rate, std::size_t group) {
    check_rate(rate);
    Group& one = group_of("set_learning_rate", group);
    if (one.rate == rate) return;
    const ops::View& progress = one.progress.view();
    ops::fill(ops::sliced(progress, 0, 0, 1), rate);
    one.rate = rate;
}

void Optimizer::add(const std::vector<Tensor>& parameters, double learning_rate, std::vector<std::string> slots) {
    check_rate(learning_rate);
    if (parameters.empty()) throw ValueError("Optimizer: wants at least one parameter in a group, got none");
    std::set<const void*> seen;
    for (const Group& group : checked_state("add_group").groups)
        for (const Tensor& parameter : group.parameters) seen.insert(parameter.state().get());
    for (const Tensor& parameter : parameters) {
        const auto refuse = [&](std::string_view what) {
            throw ValueError(
                fmt::format("Optimizer: wants leaf tensors that require a gradient, got {} as parameter {}", what,
                            &parameter - parameters.data()));
        };
        if (!parameter.defined()) refuse("an undefined tensor");
        if (!parameter.is_leaf()) refuse("the result of a function");
        if (!parameter.requires_grad()) refuse("one that requires none (set_requires_grad)");
        ops::require_real("Optimizer", "a parameter", parameter.dtype());
        ops::require_alike("Optimizer", "the first parameter", parameters[0].view(), "another", parameter.view());
        ops::require_dense("Optimizer", "parameter", parameter.view());
        if (!seen.insert(parameter.state().get()).second)
            throw ValueError(fmt::format("Optimizer: wants each parameter once, got one of shape {} twice",
                                         parameter.shape().str()));
    }
    const Scope scope("optimizer");  // whose memory it is
    Group group;
    group.parameters = parameters;
    group.slot_names = std::move(slots);
    for (std::size_t slot = 0; slot < group.slot_names.size(); ++slot) {
        group.slots.emplace_back();
        for (const Tensor& parameter : parameters)
            group.slots.back().push_back(
                zeros(parameter.shape(), {compute_type(parameter.dtype()), parameter.device()}));
    }
    if (is_half(parameters[0].dtype()))
        for (const Tensor& parameter : parameters)
            group.masters.push_back(parameter.detach().to(compute_type(parameter.dtype())).clone());
    const TensorOptions like{compute_type(parameters[0].dtype()), parameters[0].device()};
    group.dtype = parameters[0].dtype();
    group.progress = zeros({2}, like);
    group.initial_rate = learning_rate;
    group.rate = -1;
    if (!state_->guard.defined()) state_->guard = zeros({2}, {DType::i32, like.device});
    state_->groups.push_back(std::move(group));
    set_learning_rate(learning_rate, state_->groups.size() - 1);
}

void Optimizer::step() {
    (void)checked_state("step");
    const Scope scope("optimizer");
    const NoGrad no_grad;
    if (Recorder* const recorder = Recorder::current())
        recorder->guard([state = std::weak_ptr(state_), groups = groups(), guard = state_->guard] {
            const auto now = state.lock();
            return now && now->groups.size() == groups && now->guard.state() == guard.state();
        });
    for (std::size_t index = 0; index < state_->groups.size(); ++index) {
        Group& group = state_->groups[index];
        std::vector<std::vector<ops::View>> roles(2 + group.slots.size());
        std::vector<std::size_t> stepped;  // parameters of f16 and bf16
        for (std::size_t i = 0; i < group.parameters.size(); ++i) {
            const Tensor& parameter = group.parameters[i];
            const Tensor gradient = parameter.grad();
            if (!gradient.defined()) continue;
            if (parameter.dtype() != group.dtype || !(parameter.device() == group.progress.device()))
                throw ValueError(
                    fmt::format("Optimizer::step: wants parameters as they were when the optimizer was made, {} on "
                                "'{}', got {} on '{}'; convert and move a "
                                "model (Module::to) before its optimizer is made",
                                name_of(group.dtype), group.progress.device().name(), name_of(parameter.dtype()),
                                parameter.device().name()));
            if (group.masters.empty()) {
                roles[0].push_back(parameter.view());
                roles[1].push_back(gradient.dense_view());
            } else {
                // Whoever wrote the parameter meanwhile has the word.
                Tensor& master = group.masters[i];
                master.copy_(where(master.to(group.dtype) == parameter, master, parameter.to(master.dtype())));
                roles[0].push_back(master.view());
                roles[1].push_back(gradient.to(master.dtype()).dense_view());
                stepped.push_back(i);
            }
            for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
                roles[2 + slot].push_back(group.slots[slot][i].view());
            parameter.mark_written();
        }
        if (roles[0].empty()) continue;
        ops::count_step(group.progress.view(), state_->guard.view());
        update(index, roles, group.progress.view(), state_->guard.view());
        for (const std::size_t i : stepped) {
            group.masters[i].mark_written();
            Tensor(group.parameters[i]).copy_(group.masters[i].to(group.dtype));
        }
    }
}

void Optimizer::zero_grad() {
    for (Group& group : checked_state("zero_grad").groups)
        for (Tensor& parameter : group.parameters) parameter.zero_grad();
}

void Optimizer::set_guard(const Tensor& guard) {
    ops::require_shape("Optimizer::set_guard", "the guard", guard.view(), {2});
    if (guard.dtype() != DType::i32)
        throw TypeError(fmt::format("Optimizer::set_guard: wants i32, got {}", name_of(guard.dtype())));
    checked_state("set_guard").guard = guard;
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
    std::vector<std::pair<std::string, Tensor>> out;
    for (std::size_t index = 0; index < checked_state("state").groups.size(); ++index) {
        const Group& group = state_->groups[index];
        out.emplace_back(fmt::format("{}.progress", index), group.progress);
        for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
            for (std::size_t i = 0; i < group.parameters.size(); ++i)
                out.emplace_back(fmt::format("{}.{}.{}", index, group.slot_names[slot], i), group.slots[slot][i]);
        for (std::size_t i = 0; i < group.masters.size(); ++i)
            out.emplace_back(fmt::format("{}.master.{}", index, i), group.masters[i]);
    }
    return out;
}

void Optimizer::load_state(const std::vector<std::pair<std::string, Tensor>>& state) {
    auto own = this->state();
    std::vector<Tensor> sources;
    for (const auto& [name, tensor] : own) {
        const auto found = std::ranges::find(state, name, &std::pair<std::string, Tensor>::first);
        if (found == state.end())
            throw ValueError(fmt::format("Optimizer::load_state: wants '{}', which is missing", name));
        ops::require_shape("Optimizer::load_state", name, found->second.view(), tensor.shape());
        if (found->second.dtype() != tensor.dtype())
            throw TypeError(fmt::format("Optimizer::load_state: wants '{}' of type {}, got {}", name,
                                        name_of(tensor.dtype()), name_of(found->second.dtype())));
        sources.push_back(found->second);
    }
    if (state.size() != own.size())
        throw ValueError(
            fmt::format("Optimizer::load_state: wants {} tensors, got {}: made for other groups or another optimizer",
                        own.size(), state.size()));
    for (std::size_t i = 0; i < own.size(); ++i) own[i].second.copy_(sources[i]);
    for (Group& group : state_->groups)
        group.rate = group.progress.dtype() == DType::f64 ? group.progress.to_vector<double>()[0]
                                                          : group.progress.to_vector<float>()[0];
}

Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
    if (!(max_norm > 0))
        throw ValueError(fmt::format("clip_grad_norm: wants a largest norm above 0, got {}", max_norm));
    if (!std::ranges::all_of(parameters, &Tensor::defined))
        throw ValueError("clip_grad_norm: wants tensors, got an undefined one");
    std::vector<ops::View> gradients;
    std::vector<std::pair<Tensor, Tensor>> halves;  // with the copies that are among the gradients
    for (const Tensor& parameter : parameters) {
        const Tensor gradient = parameter.grad();
        if (!gradient.defined()) continue;
        ops::require_dense("clip_grad_norm", "gradient", gradient.view());
        const Tensor wide = gradient.detach().to(compute_type(gradient.dtype()));
        if (is_half(gradient.dtype())) halves.emplace_back(gradient, wide);
        gradients.push_back(wide.view());
        gradient.mark_written();
    }
    if (gradients.empty()) throw ValueError("clip_grad_norm: wants at least one parameter with a gradient, got none");
    ops::MultiTensor tensors(1);
    tensors.set({gradients});
    const Tensor norm(ops::clip_norm(tensors, max_norm));
    const NoGrad no_grad;
    for (auto& [gradient, wide] : halves) gradient.copy_(wide.to(gradient.dtype()));
    return norm;
}

}  // namespace declivity::optim
