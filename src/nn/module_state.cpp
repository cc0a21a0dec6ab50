#include "module_state.hpp"

#include <mutex>
#include <utility>

#include <declivity/runtime/command_list.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::nn::detail {

std::string join_path(std::string_view prefix, std::string_view name) {
    return prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
}

ModuleState& ModuleState::of(Module& module, std::string_view path) {
    module.require_in_place(path);
    return *module.state_;
}

const ModuleState& ModuleState::of(const Module& module, std::string_view path) {
    module.require_in_place(path);
    return *module.state_;
}

void ModuleState::add_child(Module& parent, std::string_view name, std::unique_ptr<Module> child) {
    parent.add_child(name, std::move(child));
}

void ModuleState::set_scope_name(Module& child, std::string name) {
    ModuleState* const state = find(child);
    if (state == nullptr) return;
    state->scope_name = std::move(name);
    if (child.is_called()) return;
    for (const auto& [child_name, grandchild] : state->children)
        set_scope_name(*grandchild, join_path(state->scope_name, child_name));
}

void ModuleState::set_owner(Module& owner) noexcept {
    lifetime_token_.reset();
    for (const auto& [name, child] : children) child->parent_ = &owner;
}

void ModuleState::set_mode(bool on) noexcept {
    training = on;
    for (const auto& [name, child] : children)
        if (ModuleState* const state = find(*child)) state->set_mode(on);
}

void ModuleState::collect(std::string_view prefix, std::vector<NamedTensor>* to_parameters,
                          std::vector<NamedTensor>* to_buffers) const {
    guard_children();
    if (to_parameters != nullptr)
        for (const OwnParameter& parameter : parameters)
            if (parameter.slot->parametrized == nullptr)
                to_parameters->push_back({join_path(prefix, parameter.name), parameter.slot->tensor});
    if (to_buffers != nullptr)
        for (const NamedTensor& buffer : buffers)
            to_buffers->push_back({join_path(prefix, buffer.name), buffer.tensor});
    for (const auto& [name, child] : children) {
        const std::string path = join_path(prefix, name);
        of(std::as_const(*child), path).collect(path, to_parameters, to_buffers);
    }
}

void ModuleState::attribute_to_scope() {
    const auto move = [](const Tensor& tensor) { tensor.value().view().buffer.move_to_scope(Scope::path()); };
    for (const OwnParameter& parameter : parameters) move(parameter.slot->tensor);
    for (const NamedTensor& buffer : buffers) move(buffer.tensor);
    attributed.store(true, std::memory_order_relaxed);
}

void ModuleState::reset_scope_attribution() {
    attributed.store(false, std::memory_order_relaxed);
    for (const auto& [name, child] : children) of(*child).reset_scope_attribution();
}

void ModuleState::guard(std::function<bool()> is_unchanged) const {
    add_capture_guard(
        [token = lifetime(), is_unchanged = std::move(is_unchanged)] { return !token.expired() && is_unchanged(); });
}

void ModuleState::guard_children() const {
    if (!is_capturing()) return;
    add_capture_guard([token = lifetime(), this, count = children.size(), before = changes] {
        return !token.expired() && children.size() == count && changes == before;
    });
}

std::weak_ptr<const void> ModuleState::lifetime() const {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    if (!lifetime_token_) lifetime_token_ = std::make_shared<char>();
    return lifetime_token_;
}

}  // namespace declivity::nn::detail
