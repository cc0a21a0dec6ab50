#include "arena.hpp"

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::detail {
namespace {

constexpr std::size_t kFirstChunk = std::size_t{256} << 10;

}  // namespace

std::shared_ptr<Block> Arena::allocate(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const bool exact = pool_.exact();
    const std::size_t reserved = pool_.reserved_for(bytes);
    const FreeParts::Part* part = free_.find(reserved, exact);
    if (part == nullptr) {
        grow(reserved);
        part = free_.find(reserved, exact);
    }
    Slab& slab = *part->slab;
    auto block = checked(fmt::format("allocation of {} bytes", bytes), device_.info.name, [&] {
        return std::make_shared<Block>(device_.owner, nullptr, slab.memory, slab.base + part->offset, bytes);
    });
    free_.take(*part, reserved, {});
    block->slab = &slab;
    block->owner = this;
    block->reserved = reserved;
    block->arena = shared_from_this();
    return block;
}

/// Grows by a quarter of the present size, so that at most a fifth is unused.
void Arena::grow(std::size_t reserved) {
    const std::size_t wanted =
        pool_.exact() ? reserved : std::max({reserved, kFirstChunk, static_cast<std::size_t>(total_ / 4)});
    const ResumedScope own(ScopePath("captured step"));
    const auto taken = [&] {
        try {
            return pool_.allocate(wanted, BufferUse::compute);
        } catch (const OutOfMemory&) {
            if (wanted == reserved) throw;
            return pool_.allocate(reserved, BufferUse::compute);
        }
    };
    Chunk chunk{taken(), nullptr};
    chunk.slab = std::make_unique<Slab>(Slab{.memory = shared(chunk.block->memory, "allocation", device_.info.name)});
    Slab& slab = *chunk.slab;
    slab.base = chunk.block->offset;
    slab.size = chunk.block->reserved;
    slab.number = chunks_.size();
    chunks_.push_back(std::move(chunk));
    free_.add(slab);
    total_ += slab.size;
}

void Arena::release(Block& block) noexcept {
    pool_.drop_derived(block);
    try {
        const std::scoped_lock lock(mutex_);
        free_.release(*block.slab, block.offset - block.slab->base);
    } catch (...) {
        // A destructor cannot report: the part stays allocated.
    }
}

std::uint64_t Arena::size() const {
    const std::scoped_lock lock(mutex_);
    return total_;
}

}  // namespace declivity::detail
