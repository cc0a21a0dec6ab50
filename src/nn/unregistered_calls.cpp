#include "unregistered_calls.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <utility>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include <declivity/autograd/autograd.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "module_state.hpp"
#include "parameter_slot.hpp"

namespace declivity::nn::detail {
namespace {

thread_local const RefuseUnregisteredCalls* active_refusal = nullptr;

/// type_name(), or the class name without namespaces if it is not overridden.
std::string class_name(const Module& module) {
    if (std::string name = module.type_name(); name != "Module") return name;
    std::string name = typeid(module).name();
#if __has_include(<cxxabi.h>)
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                          std::free);
    if (status == 0) name = readable.get();
#endif
    const std::size_t templates = name.find('<');
    const std::size_t colons = name.rfind("::", templates);
    return colons == std::string::npos ? name : name.substr(colons + 2);
}

/// Limits the number of warnings per pair of classes: a caller may create such a module in each step.
bool warned_often(const Module& module, const Module& caller) {
    constexpr int max_warnings = 4;
    static std::mutex mutex;
    static std::map<std::pair<std::type_index, std::type_index>, int> warning_counts;
    const std::scoped_lock lock(mutex);
    return ++warning_counts[{typeid(caller), typeid(module)}] > max_warnings;
}

/// The innermost call of this thread, or null.
thread_local const ModuleState::Call* innermost_call = nullptr;

const Module* root_of(const Module& module) noexcept {
    const Module* root = &module;
    while (const Module* const parent = ModuleState::parent_of(*root)) root = parent;
    return root;
}

bool is_external(const Module& module) noexcept {
    for (const Module* ancestor = &module; ancestor != nullptr; ancestor = ModuleState::parent_of(*ancestor))
        if (ancestor->external()) return true;
    return false;
}

/// Returns whether training changes the module: it need not be a child if it is frozen.
bool is_trained(const Module& module) {
    const ModuleState* const state = ModuleState::find(module);
    if (state == nullptr) return false;
    for (const auto& parameter : state->parameters)
        if (parameter.slot->tensor.requires_grad()) return true;
    if (dynamic_cast<const DropoutBase*>(&module) != nullptr) return state->training;
    return std::ranges::any_of(state->children, [](const auto& child) { return is_trained(*child.module); });
}

void report(const Module& module, const Module& caller) {
    const std::string callee_name = class_name(module), caller_name = class_name(caller);
    const std::string text = fmt::format(
        "{0}: expected the modules that forward() calls to be its children, got {1}, which is not: its parameters are "
        "not trained or saved with those of {0}, and train(), eval() and to() do not reach it. Register it, `{1}& "
        "layer = add(\"layer\", {1}(...));`; a module that is trained on its own is declared by set_external()",
        caller_name, callee_name);
    if (active_refusal != nullptr) throw ValueError(text);
    if (!warned_often(module, caller)) std::fprintf(stderr, "declivity: warning: %s\n", text.c_str());
}

}  // namespace

void UnregisteredCalls::enter(ModuleState::Call& call) {
    Module& module = call.module_;
    const ModuleState::Call* const caller = innermost_call;
    call.caller_ = caller;
    call.root_ =
        caller != nullptr && ModuleState::parent_of(module) == &caller->module_ ? caller->root_ : root_of(module);
    innermost_call = &call;
    if (caller == nullptr || caller->root_ == call.root_ || !grad_enabled()) return;
    std::atomic<bool>& reported = ModuleState::of(module).reported;
    if (active_refusal == nullptr && reported.load(std::memory_order_relaxed)) return;
    for (const ModuleState::Call* outer = caller->caller_; outer != nullptr; outer = outer->caller_)
        if (outer->root_ == call.root_) return;
    if ((active_refusal != nullptr && active_refusal->is_trained(call.root_)) || is_external(module) ||
        !is_trained(module))
        return;
    reported.store(true, std::memory_order_relaxed);
    try {
        report(module, caller->module_);
    } catch (...) {
        innermost_call = caller;
        throw;
    }
}

void UnregisteredCalls::leave(const ModuleState::Call& call) noexcept { innermost_call = call.caller_; }

RefuseUnregisteredCalls::RefuseUnregisteredCalls(const std::vector<const Module*>& trained)
    : previous_(std::exchange(active_refusal, this)) {
    for (const Module* module : trained) roots_.push_back(root_of(*module));
}
RefuseUnregisteredCalls::~RefuseUnregisteredCalls() { active_refusal = previous_; }

bool RefuseUnregisteredCalls::is_trained(const Module* root) const noexcept {
    return std::ranges::find(roots_, root) != roots_.end();
}

}  // namespace declivity::nn::detail
