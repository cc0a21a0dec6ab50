// Floor 1, private. Pinned host memory through which bytes travel to the device without anybody waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "opencl.hpp"

namespace declivity::detail {

class DeviceState;
struct Block;

/// Blocks of pinned host memory, used again as soon as the copy out of them is done. Thread-safe.
class StagingPool {
  public:
    explicit StagingPool(DeviceState& device) : device_(device) {}

    /// Copies `source` aside and enqueues its way into `destination` at byte `offset`; gives the last copy's event.
    /// @param after what the first copy waits for, or null
    cl::Event send(cl::CommandQueue& queue, const Block& destination, std::size_t offset, std::span<const std::byte> source,
                   const std::vector<cl::Event>* after);

  private:
    struct Staged {
        cl::Buffer memory;  // CL_MEM_ALLOC_HOST_PTR, mapped for good
        std::byte* host = nullptr;
        std::size_t size = 0;
        cl::Event done;     // the copy that reads it
    };
    /// A block of at least `bytes` that no copy reads any more.
    Staged take(std::size_t bytes);
    Staged make(std::size_t size);
    void unmap(const Staged& staged);

    DeviceState& device_;
    std::mutex mutex_;
    std::list<Staged> blocks_;
    std::uint64_t total_ = 0;  // bytes pinned, those in hand included
    cl::CommandQueue mapping_; // maps wait for nothing there, whatever the others have to do
};

}  // namespace declivity::detail
