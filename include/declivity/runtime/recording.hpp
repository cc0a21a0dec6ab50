// Floor 1. Recording: what a thread enqueues is kept, to be enqueued again without preparing it again.
//
// For steps of tensors see <declivity/tensor/record.hpp>; this floor knows of buffers and commands alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
struct RecorderState;
class RecordingState;
}  // namespace detail

/// Kernels, copies and fills that ran once, each kernel with its arguments set, and the memory in which they work. A
/// shared handle, thread-safe; an empty one has no commands.
class DECLIVITY_API Recording {
  public:
    Recording() = default;
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
    /// Whether what the commands depend on beside memory (Recorder::guard) is as it was. For whoever can make the
    /// commands anew: replay() does not ask.
    [[nodiscard]] bool guards_hold() const;

    /// From the next replay on, commands read input `index` from other memory of at least the same size. The recording
    /// holds it until it is replaced in turn.
    /// @throws ValueError for an index that there is not, or memory that does not serve; ShapeError for memory that is
    /// too small, DeviceError for
    /// that of another device
    void replace(std::size_t index, const Buffer& with) const;
    /// Whether memory is aligned as the input that was recorded, and not the recording's own, which a replay overwrites
    /// before it has been read. That of the pool is aligned, unless an input was not.
    [[nodiscard]] bool serves(std::size_t index, const Buffer& with) const;
    /// Enqueues all commands and returns at once. Values that still have to read what the commands write are launched
    /// before.
    /// @throws ValueError when it is stale; DeviceError, OutOfMemory
    void replay() const;

    explicit Recording(std::shared_ptr<detail::RecordingState> state) : state_(std::move(state)) {}

  private:
    std::shared_ptr<detail::RecordingState> state_;
};

/// What becomes of a recording that meets what cannot be recorded.
enum class WhenRefused : std::uint8_t {
    fail,  ///< Unsupported is thrown, in the middle of the step
    run    ///< the step runs to its end, and is not recorded
};

/// While one lives, what this thread enqueues for a device is run as ever, and kept. Memory for it comes from the
/// recording's own.
///
/// What a replay could not repeat is refused: to read from the device or write to it from the host, to let the compute
/// queue wait for another, to use the raw queue, to use another device.
class DECLIVITY_API Recorder {
  public:
    /// @param inputs memory that Recording::replace() may exchange for other
    /// @throws ValueError when this thread records already
    explicit Recorder(const Device& device, std::vector<Buffer> inputs = {},
                      WhenRefused when_refused = WhenRefused::fail);
    /// Without finish() nothing is kept.
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Ends it. Values that were made while it lived and that somebody still holds are computed first.
    /// @return an empty one when something was refused
    [[nodiscard]] Recording finish();
    /// What was refused, in words; empty when nothing was.
    [[nodiscard]] const std::string& refused() const;

    // ---- for floors above

    /// That of this thread; null where there is none, or within a RecordingPause.
    static Recorder* current() noexcept;
    /// Its number, 0 where there is none; no two have the same.
    static std::uint64_t current_number() noexcept;

    /// Whether something that belongs to it was launched elsewhere (RecordingOf): finish() then gives an empty
    /// recording, though nothing was refused.
    [[nodiscard]] bool incomplete() const;

    /// @param what cannot be recorded, as "read: ..."
    /// @throws Unsupported, or the recorder ends, as it was asked
    void refuse(const std::string& what);
    /// Commands use the memory in a way that their arguments do not show.
    void uses(const Buffer& buffer);
    /// Commands rely on the contents: once they are marked as written, the recording is stale.
    void relies_on(const Buffer& buffer);
    /// The commands depend on something of the host: `holds` says whether it is as it was (Recording::guards_hold), and
    /// lives as long as the recording.
    void guard(std::function<bool()> holds);
    /// Whether the contents may be another at each replay: the recording's own memory, its inputs, and what it has
    /// written.
    [[nodiscard]] bool varies(const Buffer& buffer) const;
    /// To be launched by finish(), unless it was before.
    void launch_at_end(const std::weak_ptr<PendingLaunch>& value);
    /// Called at the beginning of each replay; may enqueue.
    void before_replay(std::function<void()> call);
    /// A place for what belongs to the recorder, by whose it is.
    [[nodiscard]] std::shared_ptr<void>& attached(const void* key);

    [[nodiscard]] detail::RecorderState& state() const noexcept { return *state_; }

  private:
    std::unique_ptr<detail::RecorderState> state_;
};

/// While one lives, this thread records nothing, and takes memory from the pool: for what need not be done again.
class DECLIVITY_API RecordingPause {
  public:
    RecordingPause() noexcept;
    ~RecordingPause();
    RecordingPause(const RecordingPause&) = delete;
    RecordingPause& operator=(const RecordingPause&) = delete;

  private:
    Recorder* before_;
};

/// While one lives, this thread launches what was put off when the recorder with this number was at work
/// (Recorder::current_number(); 0: none). If that is at work here, it records; if not, nothing does, and the recording,
/// should it still be made elsewhere, lacks these commands and will not be kept.
class DECLIVITY_API RecordingOf {
  public:
    explicit RecordingOf(std::uint64_t number);
    RecordingOf(const RecordingOf&) = delete;
    RecordingOf& operator=(const RecordingOf&) = delete;

  private:
    std::optional<RecordingPause> outside_;
};

}  // namespace declivity
