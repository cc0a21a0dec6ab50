#include "process.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

// A flag, since getpid() in each launch would be a system call.
constinit std::atomic<bool> forked{false};
constinit std::atomic<bool> ending{false};

// The end of the process. exit() destroys the thread-local objects of the calling thread, then runs atexit() handlers
// and destroys static objects, the newest first. Drivers create static objects at any time, such as those of LLVM when
// PoCL's worker compiles its first kernel, and crash if they are still running when these are destroyed. So the hook
// that synchronises the queues has to be the newest: each thread that uses the library registers it again when its
// thread-local objects are destroyed. For an exit() in a thread that never used the library, the hook was registered
// after the first launch, when other threads ended, and after each synchronisation.
constinit std::atomic<int> compiling{0};
constinit std::atomic<std::uint64_t> compiled{0}, compiled_when_registered{0};
constinit thread_local bool uses_library = false;  // readable after thread-local objects are destroyed
constinit std::atomic<detail::FinishQueues> finish_queues{nullptr};

void finish_all_queues(bool certain) noexcept {
    if (const detail::FinishQueues finish = finish_queues.load()) finish(certain);
}

void end_process() noexcept {
    if (forked.load(std::memory_order_relaxed) || ending.exchange(true)) return;
    // Bounded, since a thread may be stuck in there and the process must end.
    for (int i = 0; i < 60000 && compiling.load() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // Any other thread may be a driver's thread in a callback that calls exit(); a queue would then wait for itself.
    finish_all_queues(uses_library || detail::in_main_thread());
}

void register_end() noexcept {
    compiled_when_registered.store(compiled.load());
    (void)std::atexit([] { end_process(); });
}

struct EndOfThread {
    ~EndOfThread() {
        if (forked.load(std::memory_order_relaxed) || ending.load()) return;
        const bool has_compiled = compiled.load() != compiled_when_registered.load();
        if (!detail::in_main_thread()) {
            if (!has_compiled) return;
            finish_all_queues(true);  // a worker may still be compiling
        }
        register_end();
    }
};

void watch_this_thread() {
    static thread_local EndOfThread end;
    (void)end;
    uses_library = true;
}

}  // namespace

bool after_fork() noexcept { return forked.load(std::memory_order_relaxed); }

namespace detail {

void refuse_after_fork(std::string_view action) {
    if (!after_fork()) [[likely]]
        return;
    throw DeviceError(
        fmt::format("{}: expected the process that first used a device, got a child created by fork(), in which the "
                    "driver's threads do not "
                    "exist; fork before the first use of the library, or start the child by exec",
                    action));
}

void watch_forks() {
#if defined(__unix__) || defined(__APPLE__)
    static std::once_flag once;
    std::call_once(once,
                   [] { pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); }); });
#endif
}

bool in_main_thread() noexcept {
#if defined(__linux__)
    return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
    return pthread_main_np() != 0;
#else
    return false;
#endif
}

const FunctionScope* suspended_function() noexcept;  // scope.cpp

void refuse_at_exit(std::string_view action) {
    if (!uses_library) watch_this_thread();
    if (!ending.load(std::memory_order_relaxed)) [[likely]]
        return;
    const FunctionScope* const inner = FunctionScope::current();
    const FunctionScope* const function = inner != nullptr ? inner : suspended_function();
    throw DeviceError(fmt::format(
        "{}: expected a process that runs, got one that is exiting, in which the driver's static objects may be "
        "destroyed; compute before main() ends. Computed values can still be read",
        function != nullptr ? function->name() : action));
}

bool at_exit() noexcept { return ending.load(std::memory_order_relaxed); }

void watch_exit(FinishQueues finish) {
    finish_queues.store(finish);
    static std::once_flag once;
    std::call_once(once, register_end);
    if (!uses_library) watch_this_thread();
}

void watch_exit_again() {
    if (compiled.load() != compiled_when_registered.load()) register_end();
}

void register_exit_hook() noexcept { register_end(); }

Compiling::Compiling() {
    compiling.fetch_add(1);
    compiled.fetch_add(1);
}
Compiling::~Compiling() { compiling.fetch_sub(1); }

}  // namespace detail

}  // namespace declivity
