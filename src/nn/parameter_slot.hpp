// Layer 6, private. Shared state behind nn::Parameter.
#pragma once

#include <declivity/nn/module.hpp>

namespace declivity::nn {

namespace detail {

class ParametrizationList;

/// Shared by a module's registration and its member.
struct ParameterSlot {
    Tensor tensor;  // trained tensor; while it is parametrized, one of the originals or undefined
    ParametrizationList* parametrized = nullptr;  // a child of the module
};

/// While an instance is alive, observers of this thread (ObserveCalls) are not notified.
class UnobservedScope {
  public:
    UnobservedScope();
    ~UnobservedScope();
    UnobservedScope(const UnobservedScope&) = delete;
    UnobservedScope& operator=(const UnobservedScope&) = delete;

  private:
    const void* previous_;
};

}  // namespace detail

}  // namespace declivity::nn
