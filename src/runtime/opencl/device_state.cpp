#include "device_state.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "runtime/environment.hpp"
#include "runtime/access.hpp"

namespace declivity::detail {
namespace {

KernelStyle kernel_style_of(const DeviceInfo& info) {
    if (const auto& requested = environment().style.get()) return *requested;
    switch (info.type) {
        case DeviceType::gpu:
            return KernelStyle::simt;
        // A driver that forms vectors of adjacent work-items, as on a GPU: it reports no native vector width, and how
        // many work-items run in lockstep.
        case DeviceType::cpu:
            return info.vector_width_f32 <= 1 && info.work_items_in_step > 1 ? KernelStyle::simt : KernelStyle::simd;
        default:
            return info.dedicated_local_memory ? KernelStyle::simt : KernelStyle::simd;
    }
}

DeviceTraits traits_of(const DeviceInfo& info) {
    constexpr std::uint64_t of_driver = 1024;
    return {.kernel_style = kernel_style_of(info),
            .subgroup_size = info.work_items_in_step,
            .vector_width_f32 = info.vector_width_f32,
            .vector_width_f64 = info.vector_width_f64,
            .local_memory = static_cast<std::size_t>(info.local_memory - std::min(info.local_memory, of_driver))};
}

/// Default limit in bytes of the derived cache.
std::uint64_t packed_weights_limit(const DeviceInfo& info) {
    const MemoryShare& given = environment().packed_weights.get();
    if (given.bytes) return *given.bytes;
    const std::uint64_t memory =
        std::min(info.global_memory, environment().memory_limit.get().value_or(~std::uint64_t{0}));
    return static_cast<std::uint64_t>(given.share * static_cast<double>(memory));
}

constinit std::atomic<DeviceState*> last_opened{nullptr};

}  // namespace

DeviceState::DeviceState(cl_device_id handle, cl::Context with, cl::CommandQueue queue, DeviceInfo device_info)
    : context{*this, handle, std::move(with), device_info, traits_of(device_info)},
      derived(packed_weights_limit(context.info)),
      queues(context, std::move(queue),
             [this] {
                 const MemoryStats metrics = pool.metrics();
                 return fmt::format(" (pool: {} bytes in use, {} cached, peak {}, device memory {})", metrics.in_use,
                                    metrics.cached, metrics.peak, context.info.global_memory);
             }),
      pool(context, queues, derived, [this] { drop_holders(); }),
      staging(context, queues),
      reads(context, queues),
      programs(context) {
    opened_before_ = last_opened.load();
    while (!last_opened.compare_exchange_weak(opened_before_, this)) {
    }
}

void watch_exit_behind_first_launch(const Queues& queues) noexcept {
    static std::atomic<bool> done{false};
    if (done.load(std::memory_order_relaxed) || done.exchange(true)) [[likely]]
        return;
    Queues::wait_for(queues.compute);
    register_exit_hook();
}

void DeviceState::finish_all(bool certain) noexcept {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + (certain ? std::chrono::seconds(60) : std::chrono::seconds(5));
    const auto in_time = [&](auto&& done) {
        while (!done()) {
            if (Clock::now() > end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    };
    for (DeviceState* device = last_opened.load(); device != nullptr; device = device->opened_before_) {
        // Another thread may be enqueueing, and enqueueing may compile.
        if (!in_time([&] { return !device->queues.enqueuing(); })) return;
        for (const cl::CommandQueue* queue : {&device->queues.transfer, &device->queues.compute}) {
            if (certain) {
                Queues::wait_for(*queue);
                continue;
            }
            cl_event last = nullptr;
            if (clEnqueueMarkerWithWaitList((*queue)(), 0, nullptr, &last) != CL_SUCCESS ||
                clFlush((*queue)()) != CL_SUCCESS)
                continue;
            (void)in_time([&] {
                cl_int status = CL_COMPLETE;
                return clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) !=
                           CL_SUCCESS ||
                       status <= CL_COMPLETE;
            });
        }
    }
}

void DeviceState::register_holder(const std::shared_ptr<MemoryHolder>& holder) {
    const std::scoped_lock lock(holders_mutex_);
    std::erase_if(holders_, [](const auto& item) { return item.expired(); });
    holders_.push_back(holder);
}

void DeviceState::drop_holders() noexcept {
    std::vector<std::shared_ptr<MemoryHolder>> all;  // freed after the lock is released
    try {
        const std::scoped_lock lock(holders_mutex_);
        for (const auto& holder : holders_)
            if (auto alive = holder.lock()) all.push_back(std::move(alive));
    } catch (...) {  // out of host memory: drops those that were found
    }
    for (const auto& holder : all) holder->drop();
}

std::size_t next_per_device() noexcept {
    static std::atomic<std::size_t> next{0};
    return next.fetch_add(1);
}

std::atomic<void*>& place_per_device(const Device& device, std::size_t number) noexcept {
    return state_of(device).per_device_slots[number];
}

}  // namespace declivity::detail
