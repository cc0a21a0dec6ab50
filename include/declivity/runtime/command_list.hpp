// Layer 1. Recording: what a thread enqueues is kept, to be enqueued again without preparing it again.
//
// For steps of tensors see <declivity/tensor/capture.hpp>; this layer knows of buffers and commands alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
class CommandListState;
}

/// Memory of an input: a buffer, or a part of one.
struct BufferRange {
    BufferRange(Buffer of) : buffer(std::move(of)), bytes(buffer.size()) {}  // NOLINT(google-explicit-constructor)
    /// @param from byte at which it begins
    BufferRange(Buffer of, std::size_t from, std::size_t size) : buffer(std::move(of)), offset(from), bytes(size) {}

    Buffer buffer;
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

/// Kernels, copies and fills that ran once, each kernel with its arguments set, and the memory in which they work. A
/// shared handle, thread-safe; an empty one has no commands.
class DECLIVITY_API CommandList {
  public:
    CommandList() = default;
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Commands that a replay enqueues.
    [[nodiscard]] std::size_t commands() const;
    /// Bytes of device memory that are the recording's own, for what its commands write and nobody else has.
    [[nodiscard]] std::uint64_t memory() const;
    /// A number made of kernels, ranges and plain arguments, not of memory: recordings of the same work have the same.
    [[nodiscard]] std::uint64_t fingerprint() const;
    /// Whether it can be replayed no more: memory was written that commands took as constant, or the recording gave its
    /// memory up when the device ran short.
    [[nodiscard]] bool stale() const;
    /// Whether what the commands depend on beside memory (add_capture_guard) is as it was. For whoever can make the
    /// commands anew: replay() does not ask.
    [[nodiscard]] bool guards_hold() const;

    /// From the next replay on, commands read input `index` from other memory of at least the same size. The recording
    /// holds it until it is replaced in turn.
    /// @throws ValueError for an index that there is not, or memory that does not serve; ShapeError for memory that is
    /// too small, DeviceError for
    /// that of another device
    void replace(std::size_t index, const BufferRange& with) const;
    /// Whether memory is aligned as the input that was recorded, and not the recording's own, which a replay overwrites
    /// before it has been read. That of the pool is aligned, unless an input was not.
    [[nodiscard]] bool serves(std::size_t index, const BufferRange& with) const;
    /// How many bytes behind a multiple of 256 the recorded input began: memory that lies so serves.
    [[nodiscard]] std::size_t misalignment(std::size_t index) const;
    /// Enqueues all commands and returns at once. Values that still have to read what the commands write are launched
    /// before.
    /// @throws ValueError when it is stale; DeviceError, OutOfMemory
    void replay() const;

    explicit CommandList(std::shared_ptr<detail::CommandListState> state) : state_(std::move(state)) {}

  private:
    std::shared_ptr<detail::CommandListState> state_;
};

/// What becomes of a recording that meets what cannot be recorded.
enum class WhenRefused : std::uint8_t {
    fail,  ///< Unsupported is thrown, in the middle of the step
    run    ///< the step runs to its end, and is not recorded
};

/// Whether this thread records: for what is done only where it is, such as making a guard.
DECLIVITY_API bool is_capturing() noexcept;
/// Calls `call` now. If this thread records, what was put off is launched first, and each replay calls it again at its
/// place: commands before it are enqueued then, though they need not have run, and those behind it are not. What it
/// enqueues itself runs there. It is called by the thread that replays, which records nothing meanwhile and has no lock
/// but that of the recording: it must not replay the same, nor draw random numbers of a generator that the commands
/// draw from. What it throws leaves the replay, whose later commands are not enqueued.
/// @param name for profiles
/// @throws ValueError for an empty function
DECLIVITY_API void host_call(const std::function<void()>& call, std::string_view name = "host_call");
/// While this thread records: the commands depend on something of the host, and `holds` says whether it is as it was
/// (CommandList::guards_hold). It lives as long as the recording. Nothing where nobody records.
DECLIVITY_API void add_capture_guard(std::function<bool()> holds);

}  // namespace declivity
