// Layer 1, private. Per-device singletons of the layers above, found without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>

#include <declivity/runtime/device.hpp>

namespace declivity::detail {

/// Returns the next unused index, below kMaxPerDevice; one for each type.
DECLIVITY_API std::size_t next_per_device() noexcept;
constexpr std::size_t kMaxPerDevice = 16;
DECLIVITY_API std::atomic<void*>& place_per_device(const Device& device, std::size_t number) noexcept;

/// The T of a device, created in the first call. Never destroyed, like the devices.
template <class T>
T& per_device(const Device& device) {
    static const std::size_t number = next_per_device();
    std::atomic<void*>& place = place_per_device(device, number);
    void* present = place.load(std::memory_order_acquire);
    if (present != nullptr) [[likely]]
        return *static_cast<T*>(present);
    auto made = [&] {
        if constexpr (std::is_constructible_v<T, const Device&>) return std::make_unique<T>(device);
        else return std::make_unique<T>();
    }();
    if (place.compare_exchange_strong(present, made.get())) return *made.release();
    return *static_cast<T*>(present);  // another thread was faster
}

}  // namespace declivity::detail
