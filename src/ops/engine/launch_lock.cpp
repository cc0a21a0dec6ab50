#include "launch_lock.hpp"

#include <algorithm>

#include "runtime/per_device.hpp"

namespace declivity::ops {
namespace {

void* yield(const Device& device);
void take_back(const Device& device, void* state) noexcept;

/// The lock of a device. The first one makes the runtime yield them.
struct LockOfDevice {
    LockOfDevice() {
        static constexpr declivity::detail::BlockingHook hook{yield, take_back};
        declivity::detail::set_blocking_hook(&hook);
    }
    LaunchLock lock;
};

void* yield(const Device& device) { return new LaunchLock::YieldScope(launch_lock(device)); }
void take_back(const Device&, void* state) noexcept { delete static_cast<LaunchLock::YieldScope*>(state); }

}  // namespace

LaunchLock& launch_lock(const Device& device) { return declivity::detail::per_device<LockOfDevice>(device).lock; }

LaunchLock::YieldScope::YieldScope(LaunchLock& lock) : lock_(lock) {
    if (lock.owner_.load(std::memory_order_relaxed) != this_thread()) return;
    for (InFlight* launch = lock.in_flight_; launch != nullptr; launch = launch->before_) launch->on_yield(busy_);
    lock.yielded_.push_back(this);
    depth_ = lock.depth_;
    in_flight_ = lock.in_flight_;
    lock.in_flight_ = nullptr;
    ++lock.yields_;
    lock.owner_.store(nullptr, std::memory_order_relaxed);
    lock.mutex_.unlock();
}

LaunchLock::YieldScope::~YieldScope() {
    if (depth_ == 0) return;
    lock_.mutex_.lock();
    lock_.owner_.store(this_thread(), std::memory_order_relaxed);
    lock_.depth_ = depth_;
    lock_.in_flight_ = in_flight_;
    std::erase(lock_.yielded_, this);
    lock_.back_.notify_all();  // blocked threads continue once this thread unlocks
}

bool LaunchLock::is_busy(const PendingLaunch* launch) const noexcept {
    return std::ranges::any_of(yielded_, [&](const YieldScope* yield_scope) {
        return std::ranges::find(yield_scope->busy_, launch) != yield_scope->busy_.end();
    });
}

bool LaunchLock::wait_for(const PendingLaunch* launch) {
    if (!busy(launch)) return false;
    contended_.fetch_add(1, std::memory_order_relaxed);
    YieldScope yielded(*this);  // others may need what this thread has in flight, or the lock
    std::unique_lock lock(mutex_);
    back_.wait(lock, [&] { return !busy(launch); });
    return true;
}

}  // namespace declivity::ops
