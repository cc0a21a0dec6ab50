// Layer 6, private. Detects calls of modules that are not registered as children: their parameters are not trained or
// saved with those of the calling module.
#pragma once

#include <vector>

#include <declivity/nn/module.hpp>

#include "module_state.hpp"

namespace declivity::nn::detail {

class UnregisteredCalls {
  public:
    /// Pushes a call as the innermost one of this thread. @throws ValueError within RefuseUnregisteredCalls, if the
    /// module is not a child
    static void enter(ModuleState::Call& call);
    static void leave(const ModuleState::Call& call) noexcept;
};

/// While an instance is alive, such calls of this thread throw.
class RefuseUnregisteredCalls {
  public:
    /// @param trained modules whose descendants any module may call, since they are trained and saved
    explicit RefuseUnregisteredCalls(const std::vector<const Module*>& trained);
    ~RefuseUnregisteredCalls();
    RefuseUnregisteredCalls(const RefuseUnregisteredCalls&) = delete;
    RefuseUnregisteredCalls& operator=(const RefuseUnregisteredCalls&) = delete;

    [[nodiscard]] bool is_trained(const Module* root) const noexcept;

  private:
    std::vector<const Module*> roots_;
    const RefuseUnregisteredCalls* previous_;
};

}  // namespace declivity::nn::detail
