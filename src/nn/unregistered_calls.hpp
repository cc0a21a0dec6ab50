// Layer 4, private. Calls of modules that no module in use has as a child: their parameters are not trained or saved
// with those of the module that calls them.
#pragma once

#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::nn::detail {

class UnregisteredCalls {
  public:
    /// A call begins: it is the innermost of this thread from then on. @throws ValueError within
    /// RefuseUnregisteredCalls, for a call of a module that is no child
    static void enter(Module::Call& call);
    static void leave(const Module::Call& call) noexcept;

  private:
    friend class RefuseUnregisteredCalls;
    static const Module::Call*& innermost() noexcept;
    static const Module* root_of(const Module& module) noexcept;
    static bool is_external(const Module& module) noexcept;
    static bool is_trained(const Module& module);
    static void report(Module& module, const Module& caller);
};

/// While one lives, such calls of this thread throw.
class RefuseUnregisteredCalls {
  public:
    /// @param trained modules whose children may be called within any other, since they are trained and saved
    explicit RefuseUnregisteredCalls(const std::vector<const Module*>& trained);
    ~RefuseUnregisteredCalls();
    RefuseUnregisteredCalls(const RefuseUnregisteredCalls&) = delete;
    RefuseUnregisteredCalls& operator=(const RefuseUnregisteredCalls&) = delete;

    [[nodiscard]] bool is_trained(const Module* root) const noexcept;

  private:
    std::vector<const Module*> roots_;
    const RefuseUnregisteredCalls* before_;
};

}  // namespace declivity::nn::detail
