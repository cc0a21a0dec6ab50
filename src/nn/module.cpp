#include <declivity/nn/module.hpp>

#include <algorithm>
#include <unordered_set>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/command_list.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "convert.hpp"
#include "module_state.hpp"
#include "parameter_slot.hpp"
#include "tensor/access.hpp"
#include "tensor/load_state.hpp"

namespace declivity::nn {

using detail::join_path;
using detail::ModuleState;

namespace {

/// Each tensor once, with the first of its names.
std::vector<NamedTensor> deduplicate(std::vector<NamedTensor> tensors) {
    std::unordered_set<const void*> seen;
    std::erase_if(tensors, [&](const NamedTensor& item) { return !seen.insert(state_of(item.tensor).get()).second; });
    return tensors;
}

/// @throws ValueError for a name that a module cannot add
void check_name(const Module& module, const ModuleState& state, std::string_view name) {
    if (name.empty() || name.find('.') != std::string_view::npos)
        throw ValueError(fmt::format("{}: expected a name without dots, got \"{}\"", module.type_name(), name));
    const auto is_taken = [name](const auto& list) {
        return std::ranges::any_of(list, [name](const auto& item) { return item.name == name; });
    };
    if (is_taken(state.parameters) || is_taken(state.buffers) || is_taken(state.children))
        throw ValueError(fmt::format("{}: expected each name once, got \"{}\" again", module.type_name(), name));
}

}  // namespace

Module::Module() : state_(std::make_unique<ModuleState>()) {}
Module::~Module() = default;

Module::Module(Module&& from) noexcept : state_(std::move(from.state_)) {
    if (state_) state_->set_owner(*this);
}

Module& Module::operator=(Module&& from) noexcept {
    if (this == &from) return *this;
    state_ = std::move(from.state_);
    if (!state_) return *this;
    state_->set_owner(*this);
    if (parent_ != nullptr) state_->set_mode(parent_->training());  // a replacement is added like any other child
    return *this;
}

void Module::require_in_place(std::string_view path) const {
    if (state_ != nullptr) return;
    const std::string type = type_name();  // may have been moved as well
    throw ValueError(fmt::format("{}{}: expected a module, got one that was moved from", type.empty() ? "Module" : type,
                                 path.empty() ? "" : fmt::format(" '{}'", path)));
}

Module* Module::child_at(std::size_t index) const noexcept {
    return state_ != nullptr && index < state_->children.size() ? state_->children[index].module.get() : nullptr;
}

// A step that uses a moved-from module is captured again at each call.
void Module::guard(std::function<bool()> is_unchanged) const {
    if (state_ != nullptr) state_->guard(std::move(is_unchanged));
    else add_capture_guard([] { return false; });
}

void Module::guard_children() const {
    if (state_ != nullptr) state_->guard_children();
    else add_capture_guard([] { return false; });
}

void Module::note_change() noexcept {
    if (state_ != nullptr) ++state_->changes;
}

bool Module::training() const noexcept { return state_ == nullptr || state_->training; }
bool Module::external() const noexcept { return state_ != nullptr && state_->external; }
void Module::set_external(bool external) noexcept {
    if (state_ != nullptr) state_->external = external;
}

const std::type_info& Module::capture_safe() const { return replayable(); }
const std::type_info& Module::replayable() const { return typeid(void); }

std::string Module::not_capture_safe() const {
    const auto find = [](const auto& self, const Module& module, const std::string& path) -> std::string {
        module.require_in_place(path);
        const std::type_info& declared = module.capture_safe();
        if (declared != typeid(module)) {
            const std::string type = declared == typeid(void)
                                         ? module.type_name()
                                         : fmt::format("a class derived from {}", module.type_name());
            return path.empty() ? fmt::format("the model ({})", type) : fmt::format("module '{}' ({})", path, type);
        }
        for (const auto& [name, child] : module.state_->children)
            if (std::string found = self(self, *child, join_path(path, name)); !found.empty()) return found;
        return {};
    };
    return find(find, *this, {});
}

std::int64_t Module::multiply_adds(const std::vector<Tensor>&, const std::vector<Tensor>&) const { return 0; }
std::string Module::type_name() const { return "Module"; }

Parameter Module::parameter(std::string_view name, Tensor value) {
    ModuleState& state = ModuleState::of(*this);
    check_name(*this, state, name);
    if (!value.defined()) return {};
    if (!is_floating(value.dtype()))
        throw TypeError(fmt::format("{}: expected the parameter \"{}\" of f32, f64, f16 or bf16, got {}", type_name(),
                                    name, name_of(value.dtype())));
    const FunctionScope function("parameter");
    value.set_requires_grad();
    state.parameters.push_back({std::string(name), std::make_shared<detail::ParameterSlot>(std::move(value))});
    return Parameter(state.parameters.back().slot);
}

Tensor Module::buffer(std::string_view name, Tensor value) {
    ModuleState& state = ModuleState::of(*this);
    check_name(*this, state, name);
    if (value.defined()) state.buffers.push_back({std::string(name), value});
    return value;
}

void Module::add_child(std::string_view name, std::unique_ptr<Module> module) {
    ModuleState& state = ModuleState::of(*this);
    check_name(*this, state, name);
    if (!module) throw ValueError(fmt::format("{}: expected a module as '{}', got null", type_name(), name));
    ModuleState& child_state = ModuleState::of(*module, name);
    module->parent_ = this;
    child_state.set_mode(state.training);
    ModuleState::set_scope_name(*module, is_called() ? std::string(name) : join_path(state.scope_name, name));
    state.children.push_back({std::string(name), std::move(module)});
}

std::vector<NamedTensor> Module::named_parameters() const {
    std::vector<NamedTensor> out;
    ModuleState::of(*this).collect("", &out, nullptr);
    return deduplicate(std::move(out));
}

std::vector<NamedTensor> Module::named_buffers() const {
    std::vector<NamedTensor> out;
    ModuleState::of(*this).collect("", nullptr, &out);
    return deduplicate(std::move(out));
}

std::vector<Tensor> Module::parameters() const {
    std::vector<Tensor> out;
    for (NamedTensor& named_parameter : named_parameters()) out.push_back(std::move(named_parameter.tensor));
    return out;
}

std::vector<std::pair<std::string, Module*>> Module::children() const {
    const ModuleState& state = ModuleState::of(*this);
    guard_children();
    std::vector<std::pair<std::string, Module*>> out;
    for (const auto& [name, child] : state.children) out.emplace_back(name, child.get());
    return out;
}

void Module::to(const Device& device) {
    ModuleState::of(*this).reset_scope_attribution();
    detail::convert(state_dict(), [&](const Tensor& tensor) { return tensor.to(device); });
}

void Module::to(DType dtype) {
    if (!is_floating(dtype))
        throw TypeError(fmt::format("Module::to: expected a floating type, got {}", name_of(dtype)));
    ModuleState::of(*this).reset_scope_attribution();
    detail::convert(state_dict(),
                    [&](const Tensor& tensor) { return is_floating(tensor.dtype()) ? tensor.to(dtype) : tensor; });
}

void Module::train(bool on) {
    ModuleState& state = ModuleState::of(*this);
    state.training = on;
    for (const auto& [name, child] : state.children) child->train(on);
}

void Module::zero_grad() {
    for (Tensor& parameter : parameters()) parameter.zero_grad();
}

StateDict Module::state_dict() const {
    StateDict out;
    ModuleState::of(*this).collect("", &out, &out);
    return out;
}

LoadedState Module::load_state_dict(const StateDict& state, bool strict) {
    return declivity::detail::load_state(type_name(), state_dict(), state, strict);
}

TensorOptions Module::options_of_tensors() const {
    const StateDict tensors = state_dict();
    return tensors.empty() ? TensorOptions{} : TensorOptions{tensors[0].tensor.dtype(), tensors[0].tensor.device()};
}

}  // namespace declivity::nn
