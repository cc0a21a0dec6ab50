// Layer 1, private. The state of a device, one object per process and device: it owns queues, memory and programs.
// Never destroyed, so that tensors in static storage may outlive main().
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <declivity/runtime/device.hpp>

#include "device_context.hpp"
#include "in_flight_reads.hpp"
#include "memory_pool.hpp"
#include "program_cache.hpp"
#include "queues.hpp"
#include "runtime/derived_cache.hpp"
#include "runtime/per_device.hpp"
#include "staging.hpp"

namespace declivity::detail {

/// Holds device memory that it can do without.
class MemoryHolder {
  public:
    MemoryHolder() = default;
    MemoryHolder(const MemoryHolder&) = delete;
    MemoryHolder& operator=(const MemoryHolder&) = delete;
    virtual ~MemoryHolder() = default;
    /// Frees its memory, unless it is in use.
    virtual void drop() noexcept = 0;
};

class DeviceState {
  public:
    DeviceState(cl_device_id handle, cl::Context with, cl::CommandQueue queue, DeviceInfo device_info);
    DeviceState(const DeviceState&) = delete;
    DeviceState& operator=(const DeviceState&) = delete;

    /// Synchronises the queues of all opened devices as far as possible, at the end of the process.
    /// @param certain true if the calling thread cannot be a driver thread; otherwise the wait is limited to a few
    /// seconds
    static void finish_all(bool certain) noexcept;

    /// Registers a holder of memory, which is dropped when the device runs out of memory.
    void register_holder(const std::shared_ptr<MemoryHolder>& holder);

    const DeviceContext context;
    DerivedCache derived;
    Queues queues;
    MemoryPool pool;
    StagingPool staging;
    InFlightReads reads;
    ProgramCache programs;

    std::array<std::atomic<void*>, kMaxPerDevice> per_device_slots{};  // per_device()

  private:
    void drop_holders() noexcept;

    DeviceState* opened_before_ = nullptr;
    std::mutex holders_mutex_;
    std::vector<std::weak_ptr<MemoryHolder>> holders_;
};

/// After the first kernel launch of the process, synchronises once, since drivers create static objects in their first
/// compilation, and registers the exit hook that must run before their destruction (watch_exit).
void watch_exit_behind_first_launch(const Queues& queues) noexcept;

}  // namespace declivity::detail
