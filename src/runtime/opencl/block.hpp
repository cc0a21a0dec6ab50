// Layer 1, private. The memory behind a Buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <declivity/runtime/buffer.hpp>

#include "opencl.hpp"
#include "runtime/weak_list.hpp"

namespace declivity::detail {

class Arena;
class InFlightRead;
class PendingAccess;
struct Slab;

/// Receives the memory of a block that is destroyed.
class BlockOwner {
  public:
    BlockOwner() = default;
    BlockOwner(const BlockOwner&) = delete;
    BlockOwner& operator=(const BlockOwner&) = delete;
    virtual void release(Block& block) noexcept = 0;

  protected:
    ~BlockOwner() = default;
};

/// The reads of a block that are running on the transfer queue.
class ReadsOfBlock {
  public:
    void add(std::weak_ptr<InFlightRead> read) { reads_.add(std::move(read)); }
    /// Makes the compute queue wait for them. @return whether there were any
    bool wait_on_compute_queue();
    [[nodiscard]] bool pending() const;

  private:
    WeakList<InFlightRead> reads_;
};

/// A part of a slab, or external memory (slab == nullptr).
struct Block {
    Block(DeviceState& on, Slab* from, cl::Buffer in, std::size_t at, std::size_t bytes)
        : device(on), slab(from), memory(std::move(in)), offset(at), size(bytes) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();

    DeviceState& device;
    Slab* slab;
    cl::Buffer memory;
    std::size_t offset;
    std::size_t size;              // the requested size
    std::size_t reserved = 0;      // the size taken from the slab
    BlockOwner* owner = nullptr;   // of the slab's part: the pool, or an arena
    std::shared_ptr<Arena> arena;  // keeps it alive, if it is the owner
    BufferUse use = BufferUse::compute;
    cl::Event readers_done;  // for transfer blocks: the event that the transfer queue must wait for before it writes
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::uint64_t> contents{0};        // see Buffer::contents()
    mutable std::atomic<bool> has_derived{false};  // the device's DerivedCache may have an entry
    ReadsOfBlock reads;
    std::atomic<PendingAccess*> pending_access{nullptr};  // owned; null until a higher layer needs one
};

}  // namespace declivity::detail
