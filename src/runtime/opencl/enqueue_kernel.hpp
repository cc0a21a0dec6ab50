// Layer 1, private. Enqueues a kernel.
#pragma once

#include <span>

#include <declivity/runtime/launch.hpp>

#include "program_cache.hpp"

namespace declivity::detail {

/// @param arguments checked
void enqueue_kernel(KernelState& kernel, const Range& range, std::span<const Argument> arguments);

}  // namespace declivity::detail
