// Layer 1, private. The memory pool: few large cl_mem ("slabs"), allocated in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/buffer.hpp>

#include "block.hpp"
#include "device_context.hpp"
#include "opencl.hpp"
#include "queues.hpp"
#include "runtime/derived_cache.hpp"
#include "slabs.hpp"

namespace declivity::detail {

/// Formats a size, as "1.5 GiB" or "800 B".
std::string readable_bytes(std::uint64_t bytes);

/// Best-fit allocator that merges adjacent free parts. Thread-safe.
class MemoryPool final : public BlockOwner {
  public:
    /// @param reclaim frees memory that its holders can do without, before an allocation fails
    MemoryPool(const DeviceContext& device, Queues& queues, DerivedCache& derived, std::function<void()> reclaim);

    std::shared_ptr<Block> allocate(std::size_t bytes, BufferUse use);
    void release(Block& block) noexcept override;
    /// Drops the values derived from a block that is released.
    void drop_derived(const Block& block) noexcept;
    MemoryStats metrics() const;
    std::vector<ScopeMemory> by_scope() const;
    /// Attributes the block to another scope.
    void move_to_scope(const Block& block, const ScopePath& scope);
    void reset_peak();
    void release_cached();
    /// The number of bytes that a block takes from a slab.
    [[nodiscard]] std::size_t reserved_for(std::size_t bytes) const;
    /// Returns whether each block is a separate cl_mem, for memory checkers (DECLIVITY_POOL=exact).
    [[nodiscard]] bool exact() const noexcept { return exact_; }

  private:
    std::shared_ptr<Block> take(std::size_t bytes, std::size_t reserved);
    std::shared_ptr<Block> take_transfer(std::size_t bytes, std::size_t reserved);
    /// Creates a block without ownership of its part.
    std::shared_ptr<Block> block_in(const Slab& slab, std::size_t offset, std::size_t bytes);
    bool grow(std::size_t reserved);
    cl::Buffer device_memory(std::size_t bytes) const;
    std::size_t largest() const;
    void release_cached_locked();
    std::vector<ScopeMemory> by_scope_locked() const;
    [[noreturn]] void throw_exhausted(std::size_t bytes) const;
    void count(std::size_t reserved);

    const DeviceContext& device_;
    Queues& queues_;
    DerivedCache& derived_;
    std::function<void()> reclaim_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::unique_ptr<Slab>> slabs_;  // by number
    FreeParts free_;
    // Free parts that the transfer queue wrote, with the event after which it may write them again.
    struct TransferPart {
        Slab* slab;
        std::size_t offset, reserved;
        cl::Event readers_done;
    };
    std::list<TransferPart> transfer_cache_;
    std::uint64_t next_slab_ = 0;
    std::uint64_t total_ = 0;  // bytes of all slabs
    MemoryStats metrics_;
    std::size_t alignment_;
    std::uint64_t limit_;
    bool exact_;
};

}  // namespace declivity::detail
