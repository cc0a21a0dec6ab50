// Layer 1, private. Captures the commands that a thread enqueues, to be replayed (declivity/runtime/command_list.hpp).
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
#include <declivity/runtime/command_list.hpp>

#include "stale_capture.hpp"
#include "pending_access.hpp"

namespace declivity {

namespace detail {
struct Block;
struct CapturedCommands;
struct CaptureState;
}  // namespace detail

/// The memory that the commands of a step use, except its own: for checks whether inputs in such memory may be
/// substituted. It keeps no memory alive.
class DECLIVITY_API CapturedUses {
  public:
    /// @param inputs_aliased true if the memory of the inputs was also used other than as an input
    CapturedUses(const detail::CapturedCommands& step, bool inputs_aliased);

    /// Returns whether a replay with these inputs is equivalent to calls of the function: no input is located in memory
    /// that the commands write by other means, and no written input is located in memory used by other means or
    /// overlaps another input. Otherwise the result depends on the order of reads and writes, which is that of the
    /// captured inputs.
    [[nodiscard]] bool aliases_safely(std::span<const BufferRange> inputs) const;
    /// Returns whether any two inputs overlap.
    [[nodiscard]] static bool overlap(std::span<const BufferRange> inputs);

  private:
    struct UsedBlock {
        std::weak_ptr<detail::Block> block;  // a later block may have the same address
        bool written = false;
    };
    std::unordered_map<const detail::Block*, UsedBlock> used_blocks_;
    std::vector<bool> writes_;  // by input
};

/// While an instance lives, commands that this thread enqueues for the device run as usual and are captured. Memory for
/// them comes from the command list's arena.
///
/// Operations that a replay could not repeat are refused: reads from the device and writes to it from the host, making
/// the compute queue wait for another queue, use of the raw queue, use of another device.
class DECLIVITY_API Capture {
  public:
    /// @param inputs memory that CommandList::replace() may exchange
    /// @throws ValueError if this thread is capturing already
    explicit Capture(const Device& device, std::vector<BufferRange> inputs = {},
                     WhenRefused when_refused = WhenRefused::fail);
    /// Discards the commands unless finish() was called.
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    /// Ends the capture. Pending values that were created during it and are still referenced are computed first.
    /// @return an empty list if an operation was refused
    [[nodiscard]] CommandList finish();
    /// The refused operation, in words; empty if there was none.
    [[nodiscard]] const std::string& refused() const;

    // ---- for layers above

    /// The capture of this thread; null if there is none, or within a CapturePause.
    static Capture* current() noexcept;
    /// The number of the current capture, 0 if there is none; numbers are unique.
    static std::uint64_t current_number() noexcept;

    /// Returns whether a value of the step was launched outside of the capture (CaptureScope): finish() then returns an
    /// empty list, though nothing was refused.
    [[nodiscard]] bool incomplete() const;

    /// Returns whether commands refer to the whole buffer of which an input is a part, or to memory around the input:
    /// they are then valid only for this very range.
    [[nodiscard]] bool needs_whole_inputs() const;
    /// Memory used by the commands so far; to be called before finish().
    [[nodiscard]] CapturedUses uses(bool inputs_aliased) const;
    /// Returns whether the memory is that of an input.
    [[nodiscard]] bool is_input(const Buffer& buffer) const;
    /// Returns whether a host_call of the step has used the object of `key`, see host_call_shares().
    [[nodiscard]] bool host_calls_use(const void* key) const;
    /// Launches the deferred operations of the step.
    void launch_deferred();

    /// @param operation that cannot be captured, such as "a read to the host"
    /// @throws Unsupported; or the capture ends (WhenRefused::run)
    void refuse(const std::string& operation);
    /// @param reason why it cannot be captured, @param remedy what to do instead
    void refuse(const std::string& operation, std::string_view reason, std::string_view remedy);
    /// Refuses an operation on another device than that of the step.
    void refuse_other_device(const std::string& operation);
    /// Declares that commands use the memory in a way that their arguments do not show.
    void uses(const Buffer& buffer);
    /// Declares that commands rely on the contents: once the memory is marked as written, the command list is stale.
    void relies_on(const Buffer& buffer);
    /// Adds a guard for host state that the commands depend on: `is_unchanged` returns whether it is the same
    /// (CommandList::guards_hold), and lives as long as the command list.
    void guard(std::function<bool()> is_unchanged);
    /// Returns whether the contents may differ between replays: true for the arena, the inputs, and memory that the
    /// step has written.
    [[nodiscard]] bool varies(const Buffer& buffer) const;
    /// Launches the value in finish(), unless it was launched before.
    void launch_at_end(const std::weak_ptr<PendingLaunch>& value);
    /// Called at the beginning of each replay; may enqueue.
    void before_replay(std::function<void()> call);
    /// A slot for an object of a layer above, by key; it has the lifetime of the capture.
    [[nodiscard]] std::shared_ptr<void>& user_data(const void* key);

    [[nodiscard]] detail::CaptureState& state() const noexcept { return *state_; }

  private:
    void end(const std::string& operation, std::string_view reason, std::string_view remedy);
    std::unique_ptr<detail::CaptureState> state_;
};

/// While an instance lives, this thread captures nothing and allocates from the pool: for work that need not be
/// replayed.
class DECLIVITY_API CapturePause {
  public:
    CapturePause() noexcept;
    ~CapturePause();
    CapturePause(const CapturePause&) = delete;
    CapturePause& operator=(const CapturePause&) = delete;

  private:
    Capture* before_;
};

/// To be called within a host_call of a captured or replayed step: declares that the call uses the object of `key`.
/// @return whether commands of the step have an object attached under the same key (Capture::user_data)
bool host_call_shares(const void* key);

/// While an instance lives, this thread launches operations deferred under the capture with this number
/// (Capture::current_number(); 0: none). If that capture is active in this thread, the launches are captured. Otherwise
/// they are not, and a capture still active in another thread is marked incomplete and will be discarded.
class DECLIVITY_API CaptureScope {
  public:
    explicit CaptureScope(std::uint64_t number);
    CaptureScope(const CaptureScope&) = delete;
    CaptureScope& operator=(const CaptureScope&) = delete;

  private:
    std::optional<CapturePause> outside_;
};

}  // namespace declivity
