// Layer 1, private. Host memory through which bytes travel to the device without anybody waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "opencl.hpp"

namespace declivity::detail {

class DeviceState;
struct Block;

/// Blocks of host memory, used again as soon as the copy out of them is done. Thread-safe.
///
/// Where the device reads the host's memory itself (a CPU, an integrated GPU), plain memory serves. Elsewhere the first
/// upload of a size pins a few blocks of it at once, and no later one pins more: how many copies are under way differs
/// from run to run, and a training step shall create no OpenCL buffer on its hundredth call because the device was
/// slow. A host further ahead than the pinned blocks reach copies through plain memory, which the driver stages itself.
class StagingPool {
  public:
    /// Pinned memory is used where the device has memory of its own, or as DECLIVITY_STAGING=pinned or plain says.
    StagingPool(DeviceState& device, bool unified_memory);
    StagingPool(const StagingPool&) = delete;
    StagingPool& operator=(const StagingPool&) = delete;
    ~StagingPool();

    /// Copies `source` aside and enqueues its way into `destination` at byte `offset`.
    /// @param after what the first copy waits for, or null; @param last gets the last copy's event, or null
    void send(cl::CommandQueue& queue, const Block& destination, std::size_t offset, std::span<const std::byte> source,
              const std::vector<cl::Event>* after, cl::Event* last);

  private:
    struct Staged {
        cl::Buffer memory;                   // pinned: CL_MEM_ALLOC_HOST_PTR, mapped for good; or null
        std::unique_ptr<std::byte[]> plain;  // the other kind
        std::byte* host = nullptr;
        std::size_t size = 0;
        cl::Event done;  // the copy that reads it
    };
    /// A block of at least `bytes` that no copy reads any more.
    Staged take(std::size_t bytes);
    /// Pins the blocks of one size; the lock is held.
    void pin(std::size_t size);

    DeviceState& device_;
    bool pinned_;
    std::mutex mutex_;
    std::list<Staged> blocks_;        // those not in hand
    std::vector<std::size_t> sizes_;  // of which blocks were pinned
    std::uint64_t total_ = 0;         // bytes of plain memory, those in hand included
    cl::CommandQueue mapping_;        // maps wait for nothing there, whatever the others have to do
};

}  // namespace declivity::detail
