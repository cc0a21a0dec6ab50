// Layer 1, private. The error of a command list that can no longer be replayed.
#pragma once

#include <declivity/runtime/error.hpp>

namespace declivity {

/// Thrown by CommandList::replay() before anything is enqueued, if the command list is stale.
struct StaleCapture : ValueError {
    using ValueError::ValueError;
};

}  // namespace declivity
