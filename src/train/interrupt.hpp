// Layer 5, private. Ctrl-C while training.
#pragma once

#include <csignal>

namespace declivity::train::detail {

/// While one lives, the first SIGINT is noted instead of ending the program; the second ends it.
class InterruptGuard {
  public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
    [[nodiscard]] static bool interrupted() noexcept;

  private:
    struct sigaction before_ {};
};

}  // namespace declivity::train::detail
