// Layer 1, private. The lock under which a thread looks at what waits to be launched on a device, and launches it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::detail {

/// One for each device. A thread may lock it several times over. Where a thread has to wait for long in the midst of
/// what it does (a kernel compiles), it lets the lock go for that time (`Yielded`): others go on, but for what it has
/// begun (`Begun`), for which they wait.
class LaunchLock {
  public:
    /// What a thread that holds the lock has begun to launch. Lives on its stack; the youngest first.
    class Begun {
      public:
        explicit Begun(LaunchLock& lock) noexcept : lock_(lock), before_(lock.begun_) { lock.begun_ = this; }
        Begun(const Begun&) = delete;
        Begun& operator=(const Begun&) = delete;
        virtual ~Begun() { lock_.begun_ = before_; }

      private:
        friend class LaunchLock;
        /// The lock is about to be let go. What others must not do meanwhile is to be made known: whoever writes
        /// memory waits for its readers.
        /// @param busy gets what nobody else is to launch
        virtual void yields(std::vector<const PendingLaunch*>& busy) = 0;

        LaunchLock& lock_;
        Begun* const before_;
    };

    /// While one lives, the lock is let go of, if this thread holds it.
    class Yielded {
      public:
        explicit Yielded(LaunchLock& lock);
        ~Yielded();
        Yielded(const Yielded&) = delete;
        Yielded& operator=(const Yielded&) = delete;

      private:
        friend class LaunchLock;
        LaunchLock& lock_;
        int depth_ = 0;  // 0: this thread did not hold it
        Begun* begun_ = nullptr;
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

    // ---- by who holds it

    /// Whether a thread that has let the lock go for a while has begun to launch it.
    [[nodiscard]] bool busy(const PendingLaunch* one) const noexcept { return !yielded_.empty() && is_busy(one); }
    /// Waits while that is so. @return whether it waited: all may be different now
    bool wait_for(const PendingLaunch* one);
    /// Grows whenever the lock is let go of in the midst of something: what was looked at before may be different.
    [[nodiscard]] std::uint64_t yields() const noexcept { return yields_; }
    /// What this thread has begun last, or null.
    [[nodiscard]] Begun* begun() const noexcept { return begun_; }

    /// How often a thread had to wait for another: that held it, or had begun what this one wants.
    [[nodiscard]] std::uint64_t contended() const noexcept { return contended_.load(std::memory_order_relaxed); }

    /// While one lives, every launch lets the lock go for a moment, of whatever thread: for tests.
    class YieldOnLaunch {
      public:
        YieldOnLaunch() { restless_.store(true); }
        ~YieldOnLaunch() { restless_.store(false); }
        YieldOnLaunch(const YieldOnLaunch&) = delete;
        YieldOnLaunch& operator=(const YieldOnLaunch&) = delete;
    };
    [[nodiscard]] static bool restless() noexcept { return restless_.load(std::memory_order_relaxed); }

  private:
    inline static constinit std::atomic<bool> restless_{false};

    static const char* this_thread() noexcept {
        static thread_local constinit char place = 0;
        return &place;
    }
    void take() {
        if (mutex_.try_lock()) return;
        contended_.fetch_add(1, std::memory_order_relaxed);
        mutex_.lock();
    }
    [[nodiscard]] bool is_busy(const PendingLaunch* one) const noexcept;

    std::mutex mutex_;
    std::atomic<const char*> owner_{nullptr};
    std::atomic<std::uint64_t> contended_{0};
    // Guarded by the lock.
    int depth_ = 0;
    Begun* begun_ = nullptr;
    std::uint64_t yields_ = 0;
    std::vector<const Yielded*> yielded_;
    std::condition_variable back_;  // of one that had let it go
};

/// That of a device.
DECLIVITY_API LaunchLock& launch_lock(const Device& device);

}  // namespace declivity::detail
