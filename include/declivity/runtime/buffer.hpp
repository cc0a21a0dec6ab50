// Layer 1. Device memory: blocks of the memory pool, and moving bytes between host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <declivity/runtime/device.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/scope.hpp>

namespace declivity {

namespace detail {
struct Block;
}

/// Which queue writes a block first. The pool may hand a block that pending kernels still read to later kernels,
/// because they run in order; one that the copy queue will write must wait for those readers.
enum class BufferUse : std::uint8_t { compute, transfer };

/// Who still has to read or write a block, by a launch that is not enqueued yet: layers above that defer launches.
class DECLIVITY_API PendingLaunch {
  public:
    PendingLaunch() = default;
    PendingLaunch(const PendingLaunch&) = delete;
    PendingLaunch& operator=(const PendingLaunch&) = delete;
    virtual ~PendingLaunch() = default;
    /// Enqueues it, if it still is pending.
    virtual void launch() = 0;
    [[nodiscard]] virtual bool pending() const noexcept = 0;
};

/// The key of a derived value: the part of a buffer that it was made from, and the name of the arrangement.
struct DerivedKey {
    std::uint64_t offset = 0, bytes = 0;  ///< of the part
    std::string kind = {};                ///< with all that the value depends on beside the contents
};

/// A shared handle to a block of device memory; the last handle gives the block back to the pool. That is safe as
/// soon as the last launch that uses it is enqueued: nothing needs to be waited for.
class DECLIVITY_API Buffer {
  public:
    Buffer() = default;
    /// @param bytes may be 0
    /// @throws OutOfMemory with the pool's figures
    Buffer(const Device& device, std::size_t bytes, BufferUse use = BufferUse::compute);

    [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] Device device() const;
    /// How many handles share the block.
    [[nodiscard]] long use_count() const noexcept { return block_.use_count(); }

    /// How often the memory was written in place, for layers that keep values for later and must know whether they are
    /// stale: a count of bump_version() calls. Who writes memory by a kernel or copy of his own, that others have read
    /// before, calls it.
    [[nodiscard]] std::uint64_t version() const noexcept;
    void bump_version() const noexcept;

    /// Counts the states of the memory in the order of the device's queue, for values that are made from its elements:
    /// grows by bump_version(), and by write_enqueued() once more. A value that was made by commands that were enqueued
    /// after contents() was read is right as long as contents() stays the same.
    [[nodiscard]] std::uint64_t contents() const noexcept;
    /// A write that bump_version() announced is in the queue: what another thread made from the memory meanwhile is not
    /// used again. Whoever calls bump_version() behind the write need not call it. See BufferWrite.
    void write_enqueued() const noexcept;

    /// A value that a layer above made from the memory's contents, such as packed weights. Null when there is none.
    [[nodiscard]] std::shared_ptr<const void> derived(const DerivedKey& key) const;
    /// Whether cache_derived() would keep such a value now: there is one already, or there is room for it within
    /// Device::packed_weights_limit(). Of each part of a buffer one value is kept. Memory of others keeps none, since
    /// they may write it unseen.
    /// @param after_uses calls with the same contents before the answer is yes, so that a value that serves once is not
    ///   made
    [[nodiscard]] bool accepts_derived(const DerivedKey& key, std::uint64_t bytes, int after_uses = 0) const;
    /// Keeps a value until the contents change, the memory is freed, or the device's memory is needed otherwise.
    /// @param made_from contents() before the value was made; if they changed since, nothing is kept
    void cache_derived(const DerivedKey& key, std::shared_ptr<const void> value, std::uint64_t bytes,
                       std::uint64_t made_from) const;

    /// Counts the memory among that of a scope, see Device::memory_by_scope().
    void move_to_scope(const ScopePath& scope) const;

    void add_reader(const std::weak_ptr<PendingLaunch>& reader) const;
    /// Launches all that still have to read the memory. Who writes in place calls it before.
    void launch_readers() const;
    /// Whether nobody can tell when the memory is written, but who has `handles` handles to it: it is the pool's, its
    /// other handles are gone, and nobody but `reader` still has to read it.
    [[nodiscard]] bool is_unshared(long handles, const PendingLaunch* reader) const;

    /// Who still has to write memory that was handed out before. It is launched before anybody reads or writes the
    /// elements, and lives until then. It must not keep the memory alive: see weak().
    void add_writer(std::shared_ptr<PendingLaunch> writer) const;
    /// Launches all that still have to write the memory. Who reads or writes elements calls it before.
    void launch_writers() const;
    [[nodiscard]] std::weak_ptr<detail::Block> weak() const noexcept { return block_; }

    explicit Buffer(std::shared_ptr<detail::Block> block) : block_(std::move(block)) {}
    [[nodiscard]] detail::Block& block() const noexcept { return *block_; }

    friend bool operator==(const Buffer& a, const Buffer& b) noexcept { return a.block_ == b.block_; }

  private:
    std::shared_ptr<detail::Block> block_;
};

/// While one lives, its thread writes the memory in place: bump_version() at its beginning, write_enqueued() at its
/// end.
class DECLIVITY_API BufferWrite {
  public:
    explicit BufferWrite(Buffer buffer) : buffer_(std::move(buffer)) { buffer_.bump_version(); }
    BufferWrite(BufferWrite&&) noexcept = default;
    BufferWrite& operator=(BufferWrite&&) = delete;
    ~BufferWrite() { buffer_.write_enqueued(); }

  private:
    Buffer buffer_;
};

/// Copies host bytes into `destination` from byte `offset` on. Returns once the bytes are copied aside (into pinned
/// memory), so the source may change at once; the device receives them in the order of its compute queue.
DECLIVITY_API void upload(const Buffer& destination, std::size_t offset, std::span<const std::byte> source);

/// As `upload`, through the copy queue, beside running kernels. Before the first kernel that uses the bytes, let the
/// compute queue wait: Queue::compute(device).wait_for(event). `destination` must have been made with
/// BufferUse::transfer, and no kernel may use it before.
[[nodiscard]] DECLIVITY_API Event upload_async(const Buffer& destination, std::size_t offset,
                                               std::span<const std::byte> source);

/// Starts a copy to the host, by the copy queue from 64 KiB on. Both must stay alive until the event is done.
[[nodiscard]] DECLIVITY_API Event download(const Buffer& source, std::size_t offset, std::span<std::byte> destination);

/// Copies device bytes to the host and waits for them.
DECLIVITY_API void read(const Buffer& source, std::size_t offset, std::span<std::byte> destination);

/// Copies bytes on the device; both buffers must live on it.
DECLIVITY_API void copy(const Buffer& source, std::size_t source_offset, const Buffer& destination,
                        std::size_t destination_offset, std::size_t bytes);

/// Repeats `pattern` (1, 2, 4, 8 or 16 bytes) over `bytes` bytes; `offset` and `bytes` are multiples of its size.
DECLIVITY_API void fill(const Buffer& destination, std::size_t offset, std::size_t bytes,
                        std::span<const std::byte> pattern);

}  // namespace declivity
