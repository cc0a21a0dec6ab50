#include "staging.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device_state.hpp"

namespace declivity::detail {
namespace {

constexpr std::size_t kSmallest = 4096;
constexpr std::size_t kLargest = std::size_t{16} << 20;       // larger uploads go in pieces
constexpr std::uint64_t kLimit = std::uint64_t{256} << 20;    // beyond this, wait for a copy rather than pin more

bool done(const cl::Event& event) {
    return event() == nullptr || event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
}

}  // namespace

cl::Event StagingPool::send(cl::CommandQueue& queue, const Block& destination, std::size_t offset, std::span<const std::byte> source,
                            const std::vector<cl::Event>* after) {
    cl::Event last;
    while (!source.empty()) {
        const std::size_t size = std::min(source.size(), kLargest);
        Staged staged = take(size);
        try {
            std::memcpy(staged.host, source.data(), size);
            cl::Event event;
            device_.submit(
                "copy to device", queue,
                [&](cl::CommandQueue& on, cl::Event* out) {
                    on.enqueueWriteBuffer(destination.memory, CL_FALSE, destination.offset + offset, size, staged.host, after, out);
                },
                &event);
            staged.done = last = event;
            // When pinned memory runs short, take() waits for these copies: they must be under way.
            if (source.size() > size) checked("flush", device_.info.name, [&] { queue.flush(); });
        } catch (...) {
            const std::scoped_lock lock(mutex_);
            blocks_.push_back(std::move(staged));  // with the event of its last copy, which is done, or none
            throw;
        }
        const std::scoped_lock lock(mutex_);
        blocks_.push_back(std::move(staged));
        source = source.subspan(size);
        offset += size;
        after = nullptr;  // the queue runs in order
    }
    return last;
}

StagingPool::Staged StagingPool::take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    return checked("take pinned host memory", device_.info.name, [&] {
        std::unique_lock lock(mutex_);
        const auto take_out = [&](auto block) {
            Staged taken = std::move(*block);
            blocks_.erase(block);
            return taken;
        };
        for (auto block = blocks_.begin(); block != blocks_.end(); ++block)
            if (block->size >= size && block->size <= 4 * size && done(block->done)) return take_out(block);
        while (total_ + size > kLimit && !blocks_.empty()) {
            // Oldest first: its copy ends soonest.
            Staged oldest = take_out(blocks_.begin());
            lock.unlock();
            device_.compute.flush();
            device_.transfer.flush();
            if (!done(oldest.done)) oldest.done.wait();
            if (oldest.size >= size && oldest.size <= 4 * size) return oldest;
            unmap(oldest);
            lock.lock();
            total_ -= oldest.size;
        }
        total_ += size;
        lock.unlock();
        try {
            return make(size);
        } catch (...) {
            lock.lock();
            total_ -= size;
            throw;
        }
    });
}

StagingPool::Staged StagingPool::make(std::size_t size) {
    {
        const std::scoped_lock lock(mutex_);
        if (mapping_() == nullptr) mapping_ = cl::CommandQueue(device_.context, device_.device);
    }
    Staged staged;
    staged.size = size;
    staged.memory = cl::Buffer(device_.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size);
    staged.host = static_cast<std::byte*>(mapping_.enqueueMapBuffer(staged.memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size));
    return staged;
}

void StagingPool::unmap(const Staged& staged) {
    mapping_.enqueueUnmapMemObject(staged.memory, staged.host);
    mapping_.flush();
}

}  // namespace declivity::detail
