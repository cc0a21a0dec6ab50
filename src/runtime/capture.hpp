// Layer 1, private. Who keeps what a thread enqueues, to be enqueued again (declivity/runtime/command_list.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/command_list.hpp>

namespace declivity {

namespace detail {
struct Block;
struct CapturedCommands;
struct CaptureState;
}  // namespace detail

/// What CommandList::replay() throws before it has enqueued anything, where the recording is stale.
struct StaleCapture : ValueError {
    using ValueError::ValueError;
};

/// Which memory the commands of a step use, their own left out: for who asks whether inputs that lie there may be put
/// in. It keeps none of it alive.
class DECLIVITY_API CapturedUses {
  public:
    /// @param under_other_names whether the memory of the inputs was used otherwise, too
    CapturedUses(const detail::CapturedCommands& step, bool under_other_names);

    /// Whether the commands do the same with these inputs as calls of the function would: no input lies in memory that
    /// they write otherwise, and none that they write lies in memory that they use otherwise, or over another input.
    /// Else the order of reads and writes counts, which is that of the inputs that were recorded.
    [[nodiscard]] bool apart(std::span<const BufferRange> inputs) const;
    /// Whether some input lies over another one.
    [[nodiscard]] static bool overlap(std::span<const BufferRange> inputs);

  private:
    struct Other {
        std::weak_ptr<detail::Block> block;  // another one may come to lie at its address
        bool written = false;
    };
    std::unordered_map<const detail::Block*, Other> others_;
    std::vector<bool> writes_;  // of each input
};

/// While one lives, what this thread enqueues for a device is run as ever, and kept. Memory for it comes from the
/// recording's own.
///
/// What a replay could not repeat is refused: to read from the device or write to it from the host, to let the compute
/// queue wait for another, to use the raw queue, to use another device.
class DECLIVITY_API Capture {
  public:
    /// @param inputs memory that CommandList::replace() may exchange for other
    /// @throws ValueError when this thread records already
    explicit Capture(const Device& device, std::vector<BufferRange> inputs = {},
                     WhenRefused when_refused = WhenRefused::fail);
    /// Without finish() nothing is kept.
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    /// Ends it. Values that were made while it lived and that somebody still holds are computed first.
    /// @return an empty one when something was refused
    [[nodiscard]] CommandList finish();
    /// What was refused, in words; empty when nothing was.
    [[nodiscard]] const std::string& refused() const;

    // ---- for layers above

    /// That of this thread; null where there is none, or within a CapturePause.
    static Capture* current() noexcept;
    /// Its number, 0 where there is none; no two have the same.
    static std::uint64_t current_number() noexcept;

    /// Whether something that belongs to it was launched elsewhere (CaptureOf): finish() then gives an empty
    /// recording, though nothing was refused.
    [[nodiscard]] bool incomplete() const;

    /// Whether commands refer to an input by its whole buffer, of which it is a part, or to what lies beside it: then
    /// they are right for this very part only.
    [[nodiscard]] bool wants_whole_inputs() const;
    /// Of the commands so far, before finish().
    [[nodiscard]] CapturedUses uses(bool inputs_under_other_names) const;
    /// Whether the memory is an input's.
    [[nodiscard]] bool is_input(const Buffer& buffer) const;
    /// Whether a host_call of the step has used what belongs to `key`, see host_call_shares().
    [[nodiscard]] bool host_calls_use(const void* key) const;
    /// Launches what belongs to it and was put off.
    void launch_waiting();

    /// @param what cannot be recorded, as "a read to the host"
    /// @throws Unsupported, or the recorder ends, as it was asked
    void refuse(const std::string& what);
    /// @param since why not, @param instead what to do
    void refuse(const std::string& what, std::string_view since, std::string_view instead);
    /// What belongs to another device than the step.
    void refuse_other_device(const std::string& what);
    /// Commands use the memory in a way that their arguments do not show.
    void uses(const Buffer& buffer);
    /// Commands rely on the contents: once they are marked as written, the recording is stale.
    void relies_on(const Buffer& buffer);
    /// The commands depend on something of the host: `holds` says whether it is as it was (CommandList::guards_hold), and
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

    [[nodiscard]] detail::CaptureState& state() const noexcept { return *state_; }

  private:
    void end(const std::string& what, std::string_view since, std::string_view instead);
    std::unique_ptr<detail::CaptureState> state_;
};

/// While one lives, this thread records nothing, and takes memory from the pool: for what need not be done again.
class DECLIVITY_API CapturePause {
  public:
    CapturePause() noexcept;
    ~CapturePause();
    CapturePause(const CapturePause&) = delete;
    CapturePause& operator=(const CapturePause&) = delete;

  private:
    Capture* before_;
};

/// Within a host_call of a step that is recorded or replayed: the call uses what belongs to `key`.
/// @return whether commands of the step have something attached to it as well (Capture::attached)
bool host_call_shares(const void* key);

/// While one lives, this thread launches what was put off when the recorder with this number was at work
/// (Capture::current_number(); 0: none). If that is at work here, it records; if not, nothing does, and the recording,
/// should it still be made elsewhere, lacks these commands and will not be kept.
class DECLIVITY_API CaptureOf {
  public:
    explicit CaptureOf(std::uint64_t number);
    CaptureOf(const CaptureOf&) = delete;
    CaptureOf& operator=(const CaptureOf&) = delete;

  private:
    std::optional<CapturePause> outside_;
};

}  // namespace declivity
