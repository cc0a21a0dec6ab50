#include <declivity/tensor/default_device.hpp>

#include <atomic>
#include <utility>

#include "runtime/process.hpp"
#include "runtime/access.hpp"

namespace declivity {
namespace {

constinit std::atomic<detail::DeviceState*> default_of_process{nullptr};
constinit thread_local detail::DeviceState* default_of_thread = nullptr;

}  // namespace

Device default_device() {
    detail::refuse_after_fork("default_device");
    if (default_of_thread != nullptr) return device_of(*default_of_thread);
    detail::DeviceState* device = default_of_process.load(std::memory_order_acquire);
    if (device != nullptr) return device_of(*device);
    detail::DeviceState* const best = &state_of(Device::best());
    return device_of(default_of_process.compare_exchange_strong(device, best) ? *best : *device);
}

void set_default_device(const Device& device) {
    detail::refuse_after_fork("set_default_device");
    default_of_process.store(&state_of(device), std::memory_order_release);
}

DefaultDevice::DefaultDevice(const Device& device) : before_(std::exchange(default_of_thread, &state_of(device))) {}
DefaultDevice::~DefaultDevice() { default_of_thread = before_; }

}  // namespace declivity
