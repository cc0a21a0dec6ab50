// Layer 1. fork(): drivers do not survive it.
#pragma once

#include <declivity/export.hpp>

namespace declivity {

/// @addtogroup runtime
/// @{

/// True if this process is a child created by fork() in a process that had used a device. Only destructors of the
/// library work in it. Always false on systems without pthread_atfork.
DECLIVITY_API bool after_fork() noexcept;

/// @}

}  // namespace declivity
