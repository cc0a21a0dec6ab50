// Floor 1, private. Pinned host memory through which bytes travel to the device without anybody waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>

#include "opencl.hpp"

namespace declivity::detail {

class DeviceState;

/// Blocks of pinned host memory, used again as soon as the copy out of them is done. Thread-safe.
class StagingPool {
  public:
    explicit StagingPool(DeviceState& device) : device_(device) {}

    struct Block {
        cl::Buffer memory;  // CL_MEM_ALLOC_HOST_PTR, mapped for good
        std::byte* host = nullptr;
        std::size_t size = 0;
        cl::Event done;     // the copy that reads it
    };

    /// A block of at least `bytes` that no copy reads any more; give it back with the event of its copy.
    Block take(std::size_t bytes);
    void give_back(Block block, cl::Event done);

  private:
    DeviceState& device_;
    std::mutex mutex_;
    std::list<Block> blocks_;
    std::uint64_t total_ = 0;
};

}  // namespace declivity::detail
