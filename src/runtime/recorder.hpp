// Floor 1, private. Who keeps what a thread enqueues, to be enqueued again (declivity/runtime/recording.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/recording.hpp>

namespace declivity {

namespace detail {
struct RecorderState;
}

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
