// Layer 6, private. The data of a module, and the functions on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/nn/callable.hpp>

#include "parameter_slot.hpp"

namespace declivity::nn::detail {

/// "prefix.name", or the name if there is no prefix.
[[nodiscard]] std::string join_path(std::string_view prefix, std::string_view name);

/// The data of a module. A module that is moved passes it on, so that its address remains the same; a moved-from module
/// has none.
struct ModuleState {
    using Call = Module::Call;
    struct OwnParameter {
        std::string name;
        std::shared_ptr<ParameterSlot> slot;
    };
    struct Child {
        std::string name;
        std::unique_ptr<Module> module;
    };

    /// @param path of the module, for the error
    /// @throws ValueError for a moved-from module
    [[nodiscard]] static ModuleState& of(Module& module, std::string_view path = {});
    [[nodiscard]] static const ModuleState& of(const Module& module, std::string_view path = {});
    /// Null for a moved-from module.
    [[nodiscard]] static ModuleState* find(const Module& module) noexcept { return module.state_.get(); }
    /// The module that `module` is a child of, or null.
    [[nodiscard]] static const Module* parent_of(const Module& module) noexcept { return module.parent_; }
    /// Module::add_child, which is protected.
    static void add_child(Module& parent, std::string_view name, std::unique_ptr<Module> child);
    /// Sets the scope name of a child, unless it is moved-from. Modules that are not called, such as lists, pass it on:
    /// "blocks" names the scopes "blocks.0", "blocks.1", ...
    static void set_scope_name(Module& child, std::string name);

    /// Makes `owner` the parent of the children. Capture guards on the previous owner fail from now on.
    void set_owner(Module& owner) noexcept;
    /// Sets the mode of this module and its descendants, moved-from ones excepted.
    void set_mode(bool on) noexcept;
    /// Appends the tensors of this module and its descendants to the lists that are not null.
    void collect(std::string_view prefix, std::vector<NamedTensor>* to_parameters,
                 std::vector<NamedTensor>* to_buffers) const;
    /// Attributes the tensors of this module to the current scope in memory statistics.
    void attribute_to_scope();
    /// Makes the next call of this module and of each descendant attribute its tensors to its scope.
    void reset_scope_attribution();

    /// Adds a capture guard that also fails once the module was moved or destroyed.
    void guard(std::function<bool()> is_unchanged) const;
    void guard_children() const;
    /// Expires when the module is moved or destroyed. Thread-safe, since several threads may capture with one module.
    [[nodiscard]] std::weak_ptr<const void> lifetime() const;

    std::string scope_name;
    std::vector<OwnParameter> parameters;
    std::vector<NamedTensor> buffers;
    std::vector<Child> children;
    bool training = true;
    bool external = false;
    std::uint64_t changes = 0;  // number of changes that captured steps cannot follow
    // Several threads may call a module.
    std::atomic<bool> attributed{false};  // its tensors are attributed to its scope in memory statistics
    std::atomic<bool> reported{false};    // warning about calls of a module that is not a child was printed

  private:
    mutable std::shared_ptr<const void> lifetime_token_;  // created on demand
};

}  // namespace declivity::nn::detail
