// Floor 1. What drivers do not survive: fork(), and the end of main().
#pragma once

#include <string_view>

#include <declivity/export.hpp>

namespace declivity {

/// Whether this process is a child that fork() made of one that had used a device. Nothing of the library works in it then but destructors.
/// Always false where there is no pthread_atfork.
DECLIVITY_API bool after_fork() noexcept;

namespace detail {
/// To be called first by whatever takes a lock that another thread may have held when the process forked, or asks the driver.
/// @throws DeviceError in such a child
DECLIVITY_API void refuse_after_fork(std::string_view doing);
/// From now on a device counts as used.
void watch_forks();

/// To be called before kernels are compiled or launched: drivers compile at either.
/// @throws DeviceError when static objects that are older than the first use of a device are being destroyed
void refuse_at_exit(std::string_view doing);
/// Whether that is so.
bool at_exit() noexcept;
/// To be called when drivers are loaded: what they keep in static storage is gone when this process has ended so far.
void watch_exit();
}  // namespace detail

}  // namespace declivity
