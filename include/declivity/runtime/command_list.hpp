// Layer 1. CommandList: the commands that a thread enqueues are captured, and replayed without preparing them again.
//
// For capture of tensor functions see <declivity/capture/capture.hpp>; this layer handles buffers and commands only.
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

/// @addtogroup runtime
/// @{

/// Memory of an input: a buffer, or a byte range of one.
struct BufferRange {
    BufferRange(Buffer of) : buffer(std::move(of)), bytes(buffer.size()) {}  // NOLINT(google-explicit-constructor)
    /// @param from offset of the first byte
    BufferRange(Buffer of, std::size_t from, std::size_t size) : buffer(std::move(of)), offset(from), bytes(size) {}

    Buffer buffer;
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

/// A captured list of kernels with their arguments, copies and fills, with the memory that they use. A shared,
/// thread-safe handle; an empty one has no commands.
class DECLIVITY_API CommandList {
  public:
    CommandList() = default;
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

    /// Number of commands that a replay enqueues.
    [[nodiscard]] std::size_t commands() const;
    /// Bytes of device memory owned by the command list, for intermediate results of its commands.
    [[nodiscard]] std::uint64_t memory() const;
    /// Hash of kernels, ranges and plain arguments, independent of memory addresses: captures of the same work are
    /// equal.
    [[nodiscard]] std::uint64_t fingerprint() const;
    /// True if it can no longer be replayed: memory that the commands treat as constant was written, or the memory of
    /// the command list was released when the device ran out of memory.
    [[nodiscard]] bool stale() const;
    /// True if all capture guards (add_capture_guard) hold, that is, the non-memory state that the commands depend on
    /// is unchanged. For callers that can capture again: replay() does not check it.
    [[nodiscard]] bool guards_hold() const;

    /// Rebinds input `index` to other memory of at least the same size, from the next replay on. The command list owns
    /// a handle to it until it is replaced again.
    /// @throws ValueError for an index out of range, or memory that is_compatible() refuses; ShapeError for memory
    /// that is too small, DeviceError for memory of another device
    void replace(std::size_t index, const BufferRange& with) const;
    /// True if memory is aligned like the captured input, and is not owned by the command list, in which case a replay
    /// would overwrite it before reading. Memory of the pool is aligned, unless the captured input was not.
    [[nodiscard]] bool is_compatible(std::size_t index, const BufferRange& with) const;
    [[deprecated("CommandList::is_compatible")]] [[nodiscard]] bool serves(std::size_t index,
                                                                           const BufferRange& with) const {
        return is_compatible(index, with);
    }
    /// Offset of the captured input from a multiple of 256 bytes, which replacement memory must have, too.
    [[nodiscard]] std::size_t misalignment(std::size_t index) const;
    /// Enqueues all commands and returns. Pending readers of the memory that the commands write are launched first.
    /// @throws ValueError if it is stale; DeviceError, OutOfMemory
    void replay() const;

  private:
    friend struct detail::StateAccess;
    explicit CommandList(std::shared_ptr<detail::CommandListState> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::CommandListState> state_;
};

/// Behaviour when a capture meets an operation that cannot be captured.
enum class WhenRefused : std::uint8_t {
    fail,  ///< Unsupported is thrown in the middle of the step
    run    ///< the step runs to its end without being captured
};

/// True while this thread captures; to skip work that only capture needs, such as creating a guard.
DECLIVITY_API bool is_capturing() noexcept;
/// Calls `call` now. If this thread captures, deferred work is launched first, and each replay calls `call` again at
/// the same position: earlier commands are enqueued then, though not necessarily finished, and later ones are not. Work
/// enqueued by `call` runs at that position. It is called on the thread that replays, outside of capture, holding only
/// the lock of the command list: it must not replay the same command list, nor use a generator from which the captured
/// commands sample. An exception leaves the replay, and the remaining commands are not enqueued.
/// @param name for profiles
/// @throws ValueError for an empty function
DECLIVITY_API void host_call(const std::function<void()>& call, std::string_view name = "host_call");
/// Adds a capture guard while this thread captures: the commands depend on host state, and `is_unchanged` returns
/// whether it is the same (CommandList::guards_hold). The guard has the lifetime of the command list. No effect outside
/// of capture.
DECLIVITY_API void add_capture_guard(std::function<bool()> is_unchanged);

// ---- deprecated names of version 0.1

using RecordedPlace [[deprecated("BufferRange")]] = BufferRange;
using Recording [[deprecated("CommandList")]] = CommandList;
[[deprecated("is_capturing")]] inline bool is_recording() noexcept { return is_capturing(); }
[[deprecated("add_capture_guard")]] inline void guard_recording(std::function<bool()> is_unchanged) {
    add_capture_guard(std::move(is_unchanged));
}

/// @}

}  // namespace declivity
