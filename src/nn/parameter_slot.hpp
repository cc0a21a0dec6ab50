// Layer 4, private. What a Parameter points to.
#pragma once

#include <declivity/nn/module.hpp>

namespace declivity::nn {

namespace detail {

class ParametrizationList;

/// Shared by a module's registration and its member.
struct ParameterSlot {
    Tensor tensor;  // that is trained; while it is parametrised, one of the originals or none of them
    ParametrizationList* parametrized = nullptr;  // a child of the module
};

/// While one lives, ObserveCalls of this thread are told nothing.
class UnobservedScope {
  public:
    UnobservedScope();
    ~UnobservedScope();
    UnobservedScope(const UnobservedScope&) = delete;
    UnobservedScope& operator=(const UnobservedScope&) = delete;

  private:
    const void* before_;
};

}  // namespace detail

}  // namespace declivity::nn
