// Floor 1. Processes that fork() made: drivers and their threads do not come along.
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
}  // namespace detail

}  // namespace declivity
