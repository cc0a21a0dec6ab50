#include <declivity/runtime/process.hpp>

#if defined(__unix__) || defined(__APPLE__)
#  include <pthread.h>
#endif

#include <atomic>
#include <cstdlib>
#include <mutex>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

// A flag rather than getpid() at each launch, which is a system call.
constinit std::atomic<bool> forked{false};
constinit std::atomic<bool> ending{false};

}  // namespace

bool after_fork() noexcept { return forked.load(std::memory_order_relaxed); }

namespace detail {

void refuse_after_fork(std::string_view doing) {
    if (!after_fork()) [[likely]] return;
    throw DeviceError(fmt::format("{}: wants the process that first used a device, got a child that fork() made of it, where the driver's threads do not "
                                  "exist; fork before the first use of the library, or start the child by exec", doing));
}

void watch_forks() {
#if defined(__unix__) || defined(__APPLE__)
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); }); });
#endif
}

void refuse_at_exit(std::string_view doing) {
    if (!ending.load(std::memory_order_relaxed)) [[likely]] return;
    throw DeviceError(fmt::format("{}: wants a process that runs, got one whose static objects are being destroyed, the driver's perhaps among them; compute "
                                  "before main() ends. What is computed can be read still", doing));
}

bool at_exit() noexcept { return ending.load(std::memory_order_relaxed); }

void watch_exit() {
    static std::once_flag once;
    std::call_once(once, [] { std::atexit([] { ending.store(true, std::memory_order_relaxed); }); });
}

}  // namespace detail

}  // namespace declivity
