// Layer 1, private. The state of a Capture and of a CommandList.
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

#include <declivity/runtime/command_list.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/scope.hpp>

#include "arena.hpp"
#include "device_state.hpp"
#include "program_cache.hpp"
#include "runtime/spans.hpp"

namespace declivity {
class Capture;
}

namespace declivity::detail {

/// Bytes, the alignment of the pool's blocks. Operators may have chosen a kernel by the alignment of an input.
constexpr std::size_t kInputAlignment = 256;

struct CapturedKernel {
    cl::Kernel kernel;  // a clone, with the arguments set
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
    std::shared_ptr<OperatorRun> run = {};  // the operator that launched it
    double bytes = 0;                       // of copies and fills
};

/// A use of an input by a command.
struct InputUse {
    std::size_t command;
    unsigned argument;         // of a kernel; 0 and 1 of a copy; index of the buffer of a call
    std::size_t element_size;  // unit of the kernel's offset
    std::int64_t offset;       // bytes from the start of the input
};

/// Memory that commands read, or write in place, and that may be replaced.
struct CapturedInput {
    Buffer buffer;
    std::size_t offset;        // bytes before it: the captured offset, until it is replaced
    std::size_t bytes;         // of the captured memory
    std::size_t misalignment;  // of the captured memory, bytes
    std::vector<InputUse> uses = {};
    bool written = false;          // in place
    bool is_inconsistent = false;  // a replacement failed: commands disagree about the memory
};

/// State shared by a Capture and its CommandList.
struct CapturedCommands {
    explicit CapturedCommands(DeviceState& on) : device(on) {}

    /// The input with this memory; null if there is none.
    CapturedInput* input(const Buffer& buffer);

    DeviceState& device;
    std::deque<CapturedCommand> commands;
    std::vector<CapturedInput> inputs;
    std::unordered_map<const Block*, Buffer> external_blocks;  // memory outside of the arena
    std::unordered_map<const Block*, Buffer> written_blocks;   // external blocks that were marked as written
    std::unordered_map<const Block*, Buffer>
        readers_launched;  // external blocks whose readers were launched: not every write is marked
    std::vector<std::pair<Buffer, std::uint64_t>> contents_dependencies;  // with their contents()
    std::vector<std::function<bool()>> guards;                            // host state
    std::vector<std::weak_ptr<Block>> arena_blocks;
    std::vector<std::function<void()>> before_replay;
    std::map<const void*, std::shared_ptr<void>> user_data;
    std::set<const void*> host_call_keys;  // keys that host calls have used
    std::unordered_map<const Block*, std::weak_ptr<Block>> written_by_host_calls;
    std::shared_ptr<Arena> arena;
    std::uint64_t fingerprint = 14695981039346656037ULL;  // FNV-1a
};

struct CaptureState {
    CaptureState(DeviceState& on, std::vector<BufferRange> with, WhenRefused when);

    [[nodiscard]] bool is_own(const Block& block) const { return block.arena == step.arena; }
    /// Registers a use of the buffer, and the argument if it is an input.
    interop::RawBuffer use(const Buffer& buffer, unsigned argument, std::size_t element_size, std::int64_t offset);
    void require_device(const DeviceState& device, std::string_view name) const;
    void mix(const void* data, std::size_t bytes);
    void add(CapturedCommand&& command);
    /// Allocates from the arena.
    std::shared_ptr<Block> allocate(std::size_t bytes);
    void write(const Buffer& buffer);
    void write_by_host_call(const Buffer& buffer);
    void launched_readers(const Buffer& buffer);

    CapturedCommands step;
    const std::uint64_t number;
    const WhenRefused when_refused;
    std::string refused;
    bool uses_outside_inputs = false;  // memory around an input in its buffer, as custom commands may
    bool incomplete = false;  // a value of the step was computed outside of it; guarded by ActiveCaptures::mutex
    std::vector<std::weak_ptr<PendingLaunch>> at_end;
};

/// While an instance lives, this thread is in a host_call.
class HostCallScope {
  public:
    /// @param capture null in a replay
    HostCallScope(CapturedCommands& step, CaptureState* capture) noexcept;
    ~HostCallScope();
    HostCallScope(const HostCallScope&) = delete;
    HostCallScope& operator=(const HostCallScope&) = delete;

    /// The innermost scope of this thread; null if there is none.
    static HostCallScope* current() noexcept;

    CapturedCommands& step;
    CaptureState* const capture;

  private:
    HostCallScope* const before_;
};

class CommandListState final : public MemoryHolder {
  public:
    explicit CommandListState(CapturedCommands&& step)
        : step_(std::make_unique<CapturedCommands>(std::move(step))),
          commands(step_->commands.size()),
          fingerprint(step_->fingerprint) {}
    ~CommandListState() override;
    CommandListState(const CommandListState&) = delete;
    CommandListState& operator=(const CommandListState&) = delete;

    void replay();
    [[nodiscard]] bool is_compatible(std::size_t index, const BufferRange& with) const;
    [[nodiscard]] std::size_t misalignment(std::size_t index) const;
    void replace(std::size_t index, const BufferRange& with);
    [[nodiscard]] bool stale() const;
    [[nodiscard]] bool guards_hold() const;
    [[nodiscard]] std::uint64_t memory() const;
    /// Frees all resources, unless a replay is running.
    void drop() noexcept override;

  private:
    void enqueue_all();
    void enqueue(CapturedCommand& command, cl::CommandQueue& queue, cl::Event* event) const;
    void call(const CapturedCommand& command) const;

    mutable std::recursive_mutex mutex_;  // also locked when memory is released within a replay
    bool replaying_ = false;
    std::unique_ptr<CapturedCommands> step_;  // null: dropped

  public:
    const std::size_t commands;
    const std::uint64_t fingerprint;
};

/// Add a launch, copy, fill or call to the capture of this thread.
void capture_launch(Capture& capture, const KernelState& kernel, const Range& range,
                    std::span<const Argument> arguments);
void capture_copy(Capture& capture, const Buffer& from, std::size_t from_offset, const Buffer& to,
                  std::size_t to_offset, std::size_t bytes);
void capture_fill(Capture& capture, const Buffer& to, std::size_t offset, std::size_t bytes,
                  std::span<const std::byte> pattern);
void capture_call(Capture& capture, const Device& device, std::string_view name, std::span<const Buffer> buffers,
                  const interop::Commands& commands);

}  // namespace declivity::detail
