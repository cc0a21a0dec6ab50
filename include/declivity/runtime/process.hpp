// Layer 1. What drivers do not survive: fork(), and the end of main().
#pragma once

#include <string_view>

#include <declivity/export.hpp>

namespace declivity {

/// Whether this process is a child that fork() made of one that had used a device. Nothing of the library works in it
/// then but destructors. Always false where there is no pthread_atfork.
DECLIVITY_API bool after_fork() noexcept;

namespace detail {
/// To be called first by whatever takes a lock that another thread may have held when the process forked, or asks the
/// driver.
/// @throws DeviceError in such a child
DECLIVITY_API void refuse_after_fork(std::string_view doing);
/// From now on a device counts as used.
void watch_forks();

/// To be called before kernels are compiled or launched: drivers compile at either.
/// @throws DeviceError when the process ends: main() has returned, or exit() was called
void refuse_at_exit(std::string_view doing);
/// Whether that is so.
bool at_exit() noexcept;
/// Whether this is the thread that main() runs in; false where it cannot be told.
bool in_main_thread() noexcept;
/// To be called when a device is opened. From then on the end of the process, before any static object of a driver is
/// destroyed, waits until all queues are empty: a driver that compiles or computes while its static objects go crashes.
void watch_exit();
/// To be called when somebody has waited for a queue: drivers may have made static objects since the last time, which
/// end before those that are older.
void watch_exit_again();

/// While one lives, this thread is within a driver's compiler. The end of the process waits for it.
class Compiling {
  public:
    Compiling();
    ~Compiling();
    Compiling(const Compiling&) = delete;
    Compiling& operator=(const Compiling&) = delete;
};
}  // namespace detail

}  // namespace declivity
