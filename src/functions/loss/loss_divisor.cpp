#include "loss_divisor.hpp"

namespace declivity::detail {

LossDivisorScope*& LossDivisorScope::current() noexcept {
    constinit static thread_local LossDivisorScope* scope = nullptr;
    return scope;
}

}  // namespace declivity::detail
