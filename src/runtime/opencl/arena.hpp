// Layer 1, private. The arena: memory of a captured command list, taken from the pool in chunks and not shared with
// other owners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "block.hpp"
#include "device_context.hpp"
#include "memory_pool.hpp"

namespace declivity::detail {

/// Reuses released blocks, as the pool does. Owned by the command list and by its blocks; the chunks return to the pool
/// when all of them are destroyed. Thread-safe.
class Arena final : public BlockOwner, public std::enable_shared_from_this<Arena> {
  public:
    Arena(const DeviceContext& device, MemoryPool& pool) : device_(device), pool_(pool) {}
    virtual ~Arena() = default;

    /// @throws OutOfMemory
    std::shared_ptr<Block> allocate(std::size_t bytes);
    void release(Block& block) noexcept override;
    /// Total bytes of all chunks.
    [[nodiscard]] std::uint64_t size() const;

  private:
    struct Chunk {
        std::shared_ptr<Block> block;
        std::unique_ptr<Slab> slab;
    };
    void grow(std::size_t reserved);

    const DeviceContext& device_;
    MemoryPool& pool_;
    mutable std::mutex mutex_;
    FreeParts free_;
    std::vector<Chunk> chunks_;
    std::uint64_t total_ = 0;
};

}  // namespace declivity::detail
