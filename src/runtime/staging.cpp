#include "staging.hpp"

#include <algorithm>
#include <bit>

#include "device_state.hpp"

namespace declivity::detail {
namespace {

constexpr std::size_t kSmallest = 4096;
constexpr std::uint64_t kLimit = std::uint64_t{1} << 30;  // beyond this, wait for a copy rather than pin more

bool done(const cl::Event& event) { return event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE; }

}  // namespace

StagingPool::Block StagingPool::take(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    const auto fits = [&](const Block& block) { return block.size >= bytes && block.size <= 4 * std::max(bytes, kSmallest); };
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
        if (!fits(*block) || !done(block->done)) continue;
        Block taken = std::move(*block);
        blocks_.erase(block);
        return taken;
    }
    if (total_ > kLimit && !blocks_.empty()) {
        // Oldest first: its copy ends soonest. Too small or too large ones are simply dropped.
        Block oldest = std::move(blocks_.front());
        blocks_.pop_front();
        total_ -= oldest.size;
        lock.unlock();
        oldest.done.wait();
        device_.compute.enqueueUnmapMemObject(oldest.memory, oldest.host);
        lock.lock();
    }
    Block block;
    block.size = std::bit_ceil(std::max(bytes, kSmallest));
    total_ += block.size;
    lock.unlock();
    checked("allocate pinned host memory", device_.info.name, [&] {
        block.memory = cl::Buffer(device_.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, block.size);
        block.host = static_cast<std::byte*>(
            device_.transfer.enqueueMapBuffer(block.memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, block.size));
    });
    return block;
}

void StagingPool::give_back(Block block, cl::Event event) {
    block.done = std::move(event);
    const std::scoped_lock lock(mutex_);
    blocks_.push_back(std::move(block));
}

}  // namespace declivity::detail
