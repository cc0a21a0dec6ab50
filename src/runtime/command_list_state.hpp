// Layer 1, private. What a Recorder collects and a Recording holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/scope.hpp>

#include "arena.hpp"
#include "program_cache.hpp"
#include "spans.hpp"
#include "capture.hpp"

namespace declivity::detail {

/// Operators may have chosen by how the memory of inputs is aligned: bytes, that of the pool's blocks.
constexpr std::size_t kInputAlignment = 256;

struct CapturedKernel {
    cl::Kernel kernel;  // its own, with the arguments set
    Range range;
};
struct CapturedCopy {
    interop::RawBuffer from, to;
    std::size_t bytes;
};
struct CapturedFill {
    interop::RawBuffer to;
    std::size_t bytes, unit;
    std::array<std::byte, 16> pattern;
};
struct CapturedCall {
    interop::Commands commands;
    std::vector<interop::RawBuffer> buffers;
};

struct CapturedHostCall {
    std::function<void()> call;
};

struct CapturedCommand {
    std::variant<CapturedKernel, CapturedCopy, CapturedFill, CapturedCall, CapturedHostCall> what;
    std::string name;
    ScopePath scope = {};
    std::shared_ptr<OperatorRun> run = {};  // the operator that it belongs to
    double bytes = 0;                       // of copies and fills
};

/// Where a command refers to an input.
struct InputUse {
    std::size_t command;
    unsigned argument;         // of a kernel; 0 and 1 of a copy; which buffer of a call
    std::size_t element_size;  // the kernel's offset counts in these
    std::int64_t offset;       // bytes from the start of the input
};

/// Memory that commands read, or write in place, and that may be exchanged for other.
struct CapturedInput {
    Buffer buffer;
    std::size_t offset;        // bytes in front of it; as it was recorded, until it is replaced
    std::size_t bytes;         // that the recorded memory had, and
    std::size_t misalignment;  // how it lies
    std::vector<InputUse> uses = {};
    bool written = false;        // in place
    bool half_replaced = false;  // by a call that failed: some commands read the one, some the other
};

/// What both need.
struct CapturedCommands {
    explicit CapturedCommands(DeviceState& on) : device(on) {}

    /// The input that is this memory; null where there is none.
    CapturedInput* input(const Buffer& buffer);

    DeviceState& device;
    std::deque<CapturedCommand> commands;
    std::vector<CapturedInput> inputs;
    std::unordered_map<const Block*, Buffer> held;     // memory of others
    std::unordered_map<const Block*, Buffer> written;  // of it, what is marked as written
    std::unordered_map<const Block*, Buffer>
        asked;  // of it, what readers were launched of: not all that is written is marked
    std::vector<std::pair<Buffer, std::uint64_t>> relied_on;  // with their contents()
    std::vector<std::function<bool()>> guards;                // of the host
    std::vector<std::weak_ptr<Block>> own;                    // blocks of the arena
    std::vector<std::function<void()>> before;
    std::map<const void*, std::shared_ptr<void>> attached;
    std::set<const void*> of_host_calls;  // what they have used of such
    std::unordered_map<const Block*, std::weak_ptr<Block>> written_by_host_calls;
    std::shared_ptr<Arena> arena;
    std::uint64_t fingerprint = 14695981039346656037ULL;  // FNV-1a
};

struct CaptureState {
    CaptureState(DeviceState& on, std::vector<BufferRange> with, WhenRefused when);

    [[nodiscard]] bool is_own(const Block& block) const { return block.arena == step.arena; }
    /// Notes who is used, and by which argument if it is an input.
    interop::RawBuffer use(const Buffer& buffer, unsigned argument, std::size_t element_size, std::int64_t offset);
    void require_device(const DeviceState& device, std::string_view name) const;
    void mix(const void* data, std::size_t bytes);
    void add(CapturedCommand&& command);
    /// From the arena.
    std::shared_ptr<Block> allocate(std::size_t bytes);
    void write(const Buffer& buffer);
    void write_by_host_call(const Buffer& buffer);
    void launched_readers(const Buffer& buffer);

    CapturedCommands step;
    const std::uint64_t number;
    const WhenRefused when_refused;
    std::string refused;
    bool uses_beside_inputs = false;  // what lies beside an input in its buffer, as commands of a program's own may
    bool incomplete = false;  // a value of the step was computed outside of it; guarded by the list of recorders
    std::vector<std::weak_ptr<PendingLaunch>> at_end;
};

/// While one lives, this thread is in a host_call.
class HostCallScope {
  public:
    /// @param recorder null in a replay
    HostCallScope(CapturedCommands& step, CaptureState* capture) noexcept;
    ~HostCallScope();
    HostCallScope(const HostCallScope&) = delete;
    HostCallScope& operator=(const HostCallScope&) = delete;

    /// Of this thread; null outside of one.
    static HostCallScope* current() noexcept;

    CapturedCommands& step;
    CaptureState* const capture;

  private:
    HostCallScope* const before_;
};

class CommandListState {
  public:
    explicit CommandListState(CapturedCommands&& step)
        : step_(std::make_unique<CapturedCommands>(std::move(step))),
          commands(step_->commands.size()),
          fingerprint(step_->fingerprint) {}
    ~CommandListState();
    CommandListState(const CommandListState&) = delete;
    CommandListState& operator=(const CommandListState&) = delete;

    void replay();
    [[nodiscard]] bool serves(std::size_t index, const BufferRange& with) const;
    [[nodiscard]] std::size_t misalignment(std::size_t index) const;
    void replace(std::size_t index, const BufferRange& with);
    [[nodiscard]] bool stale() const;
    [[nodiscard]] bool guards_hold() const;
    [[nodiscard]] std::uint64_t memory() const;
    /// Gives everything up, unless it is being replayed.
    void drop() noexcept;

  private:
    void enqueue_all();
    void enqueue(CapturedCommand& command, cl::CommandQueue& queue, cl::Event* event) const;
    void call(const CapturedCommand& command) const;

    mutable std::recursive_mutex mutex_;  // also taken by whoever lets memory go within a replay
    bool replaying_ = false;
    std::unique_ptr<CapturedCommands> step_;  // null: dropped

  public:
    const std::size_t commands;
    const std::uint64_t fingerprint;
};

/// What launches, copies and fills tell a recorder, which is that of this thread.
void capture_launch(Capture& capture, const KernelState& kernel, const Range& range,
                    std::span<const Argument> arguments);
void capture_copy(Capture& capture, const Buffer& from, std::size_t from_offset, const Buffer& to,
                  std::size_t to_offset, std::size_t bytes);
void capture_fill(Capture& capture, const Buffer& to, std::size_t offset, std::size_t bytes,
                  std::span<const std::byte> pattern);
void capture_call(Capture& capture, const Device& device, std::string_view name, std::span<const Buffer> buffers,
                  const interop::Commands& commands);

}  // namespace declivity::detail
