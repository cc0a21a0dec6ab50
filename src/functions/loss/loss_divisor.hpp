// Layer 5, private. Divisors of the mean losses of a thread, for a trainer that weights the means of batches.
#pragma once

#include <utility>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// A number on the host, or a tensor of one element.
struct LossDivisor {
    double count = 0;
    Tensor tensor = {};
};

/// While an instance is alive, it collects the divisor of each mean loss of this thread.
class LossDivisorScope {
  public:
    LossDivisorScope() : previous_(std::exchange(current(), this)) {}
    ~LossDivisorScope() { current() = previous_; }
    LossDivisorScope(const LossDivisorScope&) = delete;
    LossDivisorScope& operator=(const LossDivisorScope&) = delete;

    /// Divisor of the last mean loss.
    LossDivisor last = {};

    static LossDivisorScope*& current() noexcept;

  private:
    LossDivisorScope* previous_;
};

inline void note_divisor(double count) {
    if (LossDivisorScope* const scope = LossDivisorScope::current()) scope->last = {.count = count};
}
inline void note_divisor(const Tensor& divisor) {
    if (LossDivisorScope* const scope = LossDivisorScope::current()) scope->last = {.tensor = divisor.detach()};
}

}  // namespace declivity::detail
