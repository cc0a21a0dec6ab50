// Layer 1, private. The memory pool: few large cl_mem ("slabs"), allocated in parts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/buffer.hpp>

#include "opencl.hpp"
#include "slabs.hpp"

namespace declivity::detail {

class Arena;
class DeviceState;
class MemoryPool;

/// The memory of a Buffer: a part of a slab, or external memory (slab == nullptr).
struct Block {
    Block(DeviceState& owner, Slab* from, cl::Buffer in, std::size_t at, std::size_t bytes)
        : device(owner), slab(from), memory(std::move(in)), offset(at), size(bytes) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();

    DeviceState& device;
    Slab* slab;
    cl::Buffer memory;
    std::size_t offset;
    std::size_t size;              // the requested size
    std::size_t reserved = 0;      // the size taken from the slab
    std::shared_ptr<Arena> arena;  // owner of the slab; null: the pool
    BufferUse use = BufferUse::compute;
    cl::Event readers_done;  // for transfer blocks: the event that the copy queue must wait for before it writes
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::uint64_t> contents{0};        // see Buffer::contents()
    mutable std::atomic<bool> has_derived{false};  // the device's DerivedCache may have an entry
    std::mutex readers_mutex;
    std::vector<std::weak_ptr<PendingLaunch>> readers;
    std::size_t many_readers = 8;  // size of `readers` from which on expired ones are removed
    std::atomic<bool> has_readers{false};
    std::vector<std::shared_ptr<PendingLaunch>> writers;  // guarded by readers_mutex
    std::atomic<bool> has_writers{false};
};

/// Formats a size, as "1.5 GiB" or "800 B".
std::string readable_bytes(std::uint64_t bytes);

/// Best-fit allocator that merges adjacent free parts. Thread-safe.
class MemoryPool {
  public:
    explicit MemoryPool(DeviceState& device);

    std::shared_ptr<Block> allocate(std::size_t bytes, BufferUse use);
    void release(Block& block) noexcept;
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

    DeviceState& device_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::unique_ptr<Slab>> slabs_;  // by number
    FreeParts free_;
    // Free parts that the copy queue wrote, with the event after which it may write them again.
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
