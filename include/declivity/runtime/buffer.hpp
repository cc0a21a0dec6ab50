// Layer 1. Device memory: blocks of the memory pool, and transfers between host and device.
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

/// @addtogroup runtime
/// @{

/// The queue that first writes a block. The pool may reuse a block that pending kernels still read for later kernels,
/// because they run in order; a block written by the transfer queue must wait for those readers.
enum class BufferUse : std::uint8_t { compute, transfer };

/// A shared handle to a block of device memory; the last handle returns the block to the pool. Destruction is safe as
/// soon as the last launch that uses the block is enqueued; no synchronisation is needed.
class DECLIVITY_API Buffer {
  public:
    Buffer() = default;
    /// @param bytes may be 0
    /// @throws OutOfMemory with the statistics of the pool
    Buffer(const Device& device, std::size_t bytes, BufferUse use = BufferUse::compute);

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] Device device() const;
    /// Number of handles that share the block.
    [[nodiscard]] long use_count() const noexcept { return state_.use_count(); }

    /// In-place version counter: number of bump_version() calls, for detecting stale cached values. Code that writes
    /// memory by its own kernel or copy, after it was read, must call bump_version().
    [[nodiscard]] std::uint64_t version() const noexcept;
    void bump_version() const noexcept;
    [[deprecated("Buffer::bump_version")]] void mark_written() const noexcept { bump_version(); }

    /// State counter of the contents in queue order, for values derived from the elements: incremented by
    /// bump_version(), and again by write_enqueued(). A value derived by commands that were enqueued after contents()
    /// was read is valid while contents() is unchanged.
    [[nodiscard]] std::uint64_t contents() const noexcept;
    /// Signals that the write announced by bump_version() is enqueued: values that another thread derived from the
    /// memory in between are invalidated. Not needed if bump_version() is called after the write. See BufferWrite.
    void write_enqueued() const noexcept;

    /// Attributes the memory to a scope, see Device::memory_by_scope().
    void move_to_scope(const ScopePath& scope) const;

    friend bool operator==(const Buffer& a, const Buffer& b) noexcept { return a.state_ == b.state_; }

  private:
    friend struct detail::StateAccess;
    explicit Buffer(std::shared_ptr<detail::Block> block) : state_(std::move(block)) {}
    std::shared_ptr<detail::Block> state_;
};

/// Scope of an in-place write by this thread: calls bump_version() on construction and write_enqueued() on destruction.
class DECLIVITY_API BufferWrite {
  public:
    explicit BufferWrite(Buffer buffer) : buffer_(std::move(buffer)) { buffer_.bump_version(); }
    BufferWrite(BufferWrite&&) noexcept = default;
    BufferWrite& operator=(BufferWrite&&) = delete;
    ~BufferWrite() { buffer_.write_enqueued(); }

  private:
    Buffer buffer_;
};

/// Copies host bytes into `destination` at byte `offset`. Returns as soon as the bytes are in a staging buffer (pinned
/// memory), so the source may be modified at once; the transfer is ordered in the compute queue.
DECLIVITY_API void upload(const Buffer& destination, std::size_t offset, std::span<const std::byte> source);

/// Uploads through the transfer queue, concurrently with running kernels. Before the first kernel that uses the
/// bytes, make the compute queue wait: Queue::compute(device).wait_for(event). `destination` must have been created
/// with BufferUse::transfer, and no kernel may use it before.
[[nodiscard]] DECLIVITY_API Event upload_async(const Buffer& destination, std::size_t offset,
                                               std::span<const std::byte> source);

/// Starts a copy to the host, through the transfer queue from 64 KiB on. Both must stay alive until the event is done.
[[nodiscard]] DECLIVITY_API Event download(const Buffer& source, std::size_t offset, std::span<std::byte> destination);

/// Copies device bytes to the host; blocks until done.
DECLIVITY_API void read(const Buffer& source, std::size_t offset, std::span<std::byte> destination);

/// Copies bytes on the device; both buffers must be on the same device.
DECLIVITY_API void copy(const Buffer& source, std::size_t source_offset, const Buffer& destination,
                        std::size_t destination_offset, std::size_t bytes);

/// Fills `bytes` bytes with `pattern` (1, 2, 4, 8 or 16 bytes); `offset` and `bytes` are multiples of its size.
DECLIVITY_API void fill(const Buffer& destination, std::size_t offset, std::size_t bytes,
                        std::span<const std::byte> pattern);

// ---- deprecated names of version 0.1

[[deprecated("upload_async")]] [[nodiscard]] inline Event upload_ahead(const Buffer& destination, std::size_t offset,
                                                                       std::span<const std::byte> source) {
    return upload_async(destination, offset, source);
}

/// @}

}  // namespace declivity
