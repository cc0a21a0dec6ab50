// Layer 1, private. Staging memory of the host for asynchronous uploads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "block.hpp"
#include "device_context.hpp"
#include "queues.hpp"

namespace declivity::detail {

/// Blocks of host memory, reused once the copy out of them has completed. Thread-safe.
///
/// If the device reads host memory directly (a CPU, an integrated GPU), plain memory is used. Otherwise the first
/// upload of a size pins a few blocks of that size at once, and later uploads pin no more: the number of copies in
/// flight varies between runs, and a training step must not create an OpenCL buffer in its hundredth call because the
/// device was slow. A host that runs further ahead than the pinned blocks allow copies through plain memory, which the
/// driver stages itself.
class StagingPool {
  public:
    /// Uses pinned memory if the device has dedicated memory, or as set by DECLIVITY_STAGING=pinned or plain.
    StagingPool(const DeviceContext& device, Queues& queues);
    StagingPool(const StagingPool&) = delete;
    StagingPool& operator=(const StagingPool&) = delete;
    ~StagingPool();

    /// Copies `source` to a staging block and enqueues the copy to `destination` at byte `offset`.
    /// @param after events to wait for before the first copy, or null; @param last receives the event of the last copy,
    /// or null
    void send(cl::CommandQueue& queue, const Block& destination, std::size_t offset, std::span<const std::byte> source,
              const std::vector<cl::Event>* after, cl::Event* last);

  private:
    struct Staged {
        cl::Buffer memory;                   // pinned: CL_MEM_ALLOC_HOST_PTR, mapped permanently; or null
        std::unique_ptr<std::byte[]> plain;  // plain memory
        std::byte* host = nullptr;
        std::size_t size = 0;
        cl::Event done;  // the copy that reads it
    };
    /// Returns a block of at least `bytes` that no copy reads any more.
    Staged take(std::size_t bytes);
    /// Pins the blocks of one size; the lock is held.
    void pin(std::size_t size);

    const DeviceContext& device_;
    Queues& queues_;
    bool pinned_;
    std::mutex mutex_;
    std::list<Staged> blocks_;        // unused blocks
    std::vector<std::size_t> sizes_;  // sizes whose blocks were pinned
    std::uint64_t total_ = 0;         // bytes of plain memory, including blocks in use
    cl::CommandQueue mapping_;        // separate queue, so that mapping does not wait for other commands
};

}  // namespace declivity::detail
