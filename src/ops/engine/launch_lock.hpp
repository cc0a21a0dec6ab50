// Layer 2, private. The lock under which a thread inspects the pending operations of a device and launches them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>

#include "runtime/blocking.hpp"
#include "runtime/pending_access.hpp"

namespace declivity::ops {

/// One lock for each device, recursive. A thread that blocks for long in the middle of a launch (a kernel compiles)
/// releases the lock for that time (`YieldScope`): other threads continue, but block on what it has in
/// flight (`InFlight`).
class LaunchLock {
  public:
    /// A launch in flight, of the thread that holds the lock. Allocated on its stack; the newest first.
    class InFlight {
      public:
        explicit InFlight(LaunchLock& lock) noexcept : lock_(lock), before_(lock.in_flight_) { lock.in_flight_ = this; }
        InFlight(const InFlight&) = delete;
        InFlight& operator=(const InFlight&) = delete;
        virtual ~InFlight() { lock_.in_flight_ = before_; }

      private:
        friend class LaunchLock;
        /// Called before the lock is released: registers what other threads must respect meanwhile, such as readers for
        /// which writers of memory must wait.
        /// @param busy receives the pending launches that no other thread may launch
        virtual void on_yield(std::vector<const PendingLaunch*>& busy) = 0;

        LaunchLock& lock_;
        InFlight* const before_;
    };

    /// While an instance lives, the lock is released if this thread held it.
    class YieldScope {
      public:
        explicit YieldScope(LaunchLock& lock);
        ~YieldScope();
        YieldScope(const YieldScope&) = delete;
        YieldScope& operator=(const YieldScope&) = delete;

      private:
        friend class LaunchLock;
        LaunchLock& lock_;
        int depth_ = 0;  // 0: this thread did not hold the lock
        InFlight* in_flight_ = nullptr;
        std::vector<const PendingLaunch*> busy_;
    };

    LaunchLock() = default;
    LaunchLock(const LaunchLock&) = delete;
    LaunchLock& operator=(const LaunchLock&) = delete;

    void lock() {
        const char* const me = this_thread();
        if (owner_.load(std::memory_order_relaxed) == me) return (void)++depth_;
        take();
        owner_.store(me, std::memory_order_relaxed);
        depth_ = 1;
    }
    void unlock() noexcept {
        if (--depth_ > 0) return;
        owner_.store(nullptr, std::memory_order_relaxed);
        mutex_.unlock();
    }

    // ---- for the holder of the lock

    /// Returns whether a thread that has yielded the lock has this launch in flight.
    [[nodiscard]] bool busy(const PendingLaunch* launch) const noexcept { return !yielded_.empty() && is_busy(launch); }
    /// Blocks while that is so. @return whether it blocked: everything may have changed
    bool wait_for(const PendingLaunch* launch);
    /// Incremented whenever the lock is yielded: what was inspected before may have changed.
    [[nodiscard]] std::uint64_t yields() const noexcept { return yields_; }
    /// The newest launch in flight of this thread, or null.
    [[nodiscard]] InFlight* in_flight() const noexcept { return in_flight_; }

    /// Number of times a thread blocked on another one, for the lock or for a launch in flight.
    [[nodiscard]] std::uint64_t contended() const noexcept { return contended_.load(std::memory_order_relaxed); }

    /// While an instance lives, every launch of any thread yields the lock for a moment: for tests.
    class YieldOnLaunch {
      public:
        YieldOnLaunch() { declivity::detail::BlockingScope::on_launch() = true; }
        ~YieldOnLaunch() { declivity::detail::BlockingScope::on_launch() = false; }
        YieldOnLaunch(const YieldOnLaunch&) = delete;
        YieldOnLaunch& operator=(const YieldOnLaunch&) = delete;
    };

  private:
    static const char* this_thread() noexcept {
        static thread_local constinit char place = 0;
        return &place;
    }
    void take() {
        if (mutex_.try_lock()) return;
        contended_.fetch_add(1, std::memory_order_relaxed);
        mutex_.lock();
    }
    [[nodiscard]] bool is_busy(const PendingLaunch* launch) const noexcept;

    std::mutex mutex_;
    std::atomic<const char*> owner_{nullptr};
    std::atomic<std::uint64_t> contended_{0};
    // Guarded by the lock.
    int depth_ = 0;
    InFlight* in_flight_ = nullptr;
    std::uint64_t yields_ = 0;
    std::vector<const YieldScope*> yielded_;
    std::condition_variable back_;  // notified when a thread takes the lock back
};

/// The lock of a device. While a thread compiles a kernel, it yields the lock.
DECLIVITY_API LaunchLock& launch_lock(const Device& device);

}  // namespace declivity::ops
