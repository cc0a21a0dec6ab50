#include "staging.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/environment.hpp"

namespace declivity::detail {
namespace {

constexpr std::size_t kSmallest = 4096;
constexpr std::size_t kLargest = std::size_t{16} << 20;     // larger uploads are split
constexpr std::size_t kPinned = std::size_t{4} << 20;       // bytes of pinned blocks of each size, within
constexpr std::size_t kFewest = 2, kMax = 16;               // this range of block counts
constexpr std::uint64_t kLimit = std::uint64_t{256} << 20;  // above this, wait for a copy instead of allocating

bool done(const cl::Event& event) {
    return event() == nullptr || event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
}

bool use_pinned(bool unified_memory) {
    const auto& wanted = environment().staging.get();
    return wanted ? *wanted == Staging::pinned : !unified_memory;
}

}  // namespace

StagingPool::StagingPool(const DeviceContext& device, Queues& queues)
    : device_(device), queues_(queues), pinned_(use_pinned(device.info.unified_memory)) {}

StagingPool::~StagingPool() {
    for (const Staged& staged : blocks_) try {
            if (staged.done() != nullptr) staged.done.wait();  // the copy still reads the block
        } catch (const cl::Error&) {                           // a lost device reads nothing
        }
}

void StagingPool::send(cl::CommandQueue& queue, const Block& destination, std::size_t offset,
                       std::span<const std::byte> source, const std::vector<cl::Event>* after, cl::Event* last) {
    while (!source.empty()) {
        const std::size_t size = std::min(source.size(), kLargest);
        Staged staged = take(size);
        try {
            std::memcpy(staged.host, source.data(), size);
            cl::Event event;
            queues_.submit(
                {.name = "copy to device", .bytes = static_cast<double>(size)}, queue,
                [&](cl::CommandQueue& on, cl::Event* out) {
                    on.enqueueWriteBuffer(destination.memory, CL_FALSE, destination.offset + offset, size, staged.host,
                                          after, out);
                },
                &event);
            staged.done = std::move(event);
            if (last != nullptr && source.size() == size)
                *last = shared(staged.done, "copy to device", device_.info.name);
            // When memory runs short, take() waits for these copies: they must have been flushed.
            if (source.size() > size) checked("flush", device_.info.name, [&] { queue.flush(); });
        } catch (...) {
            const std::scoped_lock lock(mutex_);
            blocks_.push_back(std::move(staged));  // with the event of its last copy, or none
            throw;
        }
        const std::scoped_lock lock(mutex_);
        blocks_.push_back(std::move(staged));
        source = source.subspan(size);
        offset += size;
        after = nullptr;  // the queue is in-order
    }
}

StagingPool::Staged StagingPool::take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    return checked("take host memory for an upload", device_.info.name, [&] {
        std::unique_lock lock(mutex_);
        if (pinned_ && std::ranges::find(sizes_, size) == sizes_.end()) pin(size);
        const auto take_out = [&](auto block) {
            Staged taken = std::move(*block);
            blocks_.erase(block);
            return taken;
        };
        for (const bool pinned : {true, false})
            for (auto block = blocks_.begin(); block != blocks_.end(); ++block)
                if ((block->plain == nullptr) == pinned && block->size >= size && block->size <= 4 * size &&
                    done(block->done))
                    return take_out(block);
        while (total_ + size > kLimit) {
            // Oldest first: its copy completes first.
            const auto plain =
                std::ranges::find_if(blocks_, [](const Staged& block) { return block.plain != nullptr; });
            if (plain == blocks_.end()) break;
            Staged oldest = take_out(plain);
            lock.unlock();
            try {
                queues_.compute.flush();
                queues_.transfer.flush();
                if (!done(oldest.done)) oldest.done.wait();
            } catch (const cl::Error&) {
                lock.lock();
                blocks_.push_back(std::move(oldest));  // a copy may still read it
                throw;
            }
            if (oldest.size >= size && oldest.size <= 4 * size) return oldest;
            lock.lock();
            total_ -= oldest.size;
        }
        Staged staged;
        staged.plain = std::make_unique_for_overwrite<std::byte[]>(size);
        staged.host = staged.plain.get();
        staged.size = size;
        total_ += size;
        return staged;
    });
}

void StagingPool::pin(std::size_t size) {
    if (mapping_() == nullptr) mapping_ = make_queue(device_, 0);
    std::list<Staged> pinned;  // all of them or none
    for (std::size_t left = std::clamp(kPinned / size, kFewest, kMax); left > 0; --left) {
        Staged staged;
        staged.size = size;
        staged.memory = cl::Buffer(device_.context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size);
        staged.host = static_cast<std::byte*>(
            mapping_.enqueueMapBuffer(staged.memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size));
        pinned.push_front(std::move(staged));
    }
    sizes_.push_back(size);
    blocks_.splice(blocks_.begin(), pinned);
}

}  // namespace declivity::detail
