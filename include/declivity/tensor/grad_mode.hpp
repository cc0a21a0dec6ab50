// Layer 3. Grad mode of a thread: whether functions record the autograd graph.
#pragma once

#include <declivity/export.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

/// Disables grad mode in this thread while it is alive: functions build no autograd graph.
class DECLIVITY_API NoGrad {
  public:
    [[nodiscard("grad mode is disabled only while the guard is alive: give it a name")]] NoGrad();
    ~NoGrad();
    NoGrad(const NoGrad&) = delete;
    NoGrad& operator=(const NoGrad&) = delete;

  private:
    bool before_;
};

using NoGradGuard = NoGrad;

/// Enables grad mode in this thread while it is alive, inside of NoGrad.
class DECLIVITY_API EnableGrad {
  public:
    [[nodiscard("grad mode is enabled only while the guard is alive: give it a name")]] EnableGrad();
    ~EnableGrad();
    EnableGrad(const EnableGrad&) = delete;
    EnableGrad& operator=(const EnableGrad&) = delete;

  private:
    bool before_;
};

/// True if grad mode is enabled in this thread.
DECLIVITY_API bool grad_enabled();

/// @}

}  // namespace declivity
