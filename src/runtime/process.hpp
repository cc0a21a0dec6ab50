// Layer 1, private. Process events that drivers do not survive: fork() and the end of main().
#pragma once

#include <string_view>

#include <declivity/runtime/process.hpp>

namespace declivity {
namespace detail {
/// Must be called before calling the driver or taking a lock that another thread may have held at the time of fork().
/// @throws DeviceError in such a child
DECLIVITY_API void refuse_after_fork(std::string_view action);
/// Marks a device as used, for after_fork().
void watch_forks();

/// Must be called before kernels are compiled or launched: drivers compile at either.
/// @throws DeviceError during process exit: main() has returned, or exit() was called
void refuse_at_exit(std::string_view action);
/// True during process exit.
bool at_exit() noexcept;
/// True if this is the main thread; false if it cannot be determined.
bool in_main_thread() noexcept;
/// Waits until all queues are empty.
/// @param certain false: the calling thread may be one of a driver, for which a queue would wait
using FinishQueues = void (*)(bool certain) noexcept;
/// Must be called when a device is opened. Process exit then calls `finish` before any static object of a driver is
/// destroyed: a driver that compiles or computes at that time crashes.
void watch_exit(FinishQueues finish);
/// Must be called after waiting for a queue: drivers may have created static objects since the last call, which are
/// destroyed before older ones.
void watch_exit_again();
/// Registers the exit hook once more, so that it runs before the destruction of all static objects that exist now.
void register_exit_hook() noexcept;

/// Scope in which this thread is in the compiler of a driver. Process exit waits for it.
class Compiling {
  public:
    Compiling();
    ~Compiling();
    Compiling(const Compiling&) = delete;
    Compiling& operator=(const Compiling&) = delete;
};
}  // namespace detail
}  // namespace declivity
