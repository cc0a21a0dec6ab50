// Layer 7, private. Ctrl-C while training.
#pragma once

#include <csignal>

namespace declivity::train::detail {

/// While an instance is alive, the first SIGINT is recorded instead of terminating the program; the second terminates
/// it.
class InterruptGuard {
  public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
    [[nodiscard]] static bool interrupted() noexcept;

  private:
    struct sigaction previous_action_ {};
};

}  // namespace declivity::train::detail
