// Layer 1, private. The state of a profiler for one device.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/launch.hpp>

#include "device_clock.hpp"
#include "device_context.hpp"
#include "opencl.hpp"
#include "runtime/spans.hpp"

namespace declivity::detail {

/// A command as profiles see it.
struct Command {
    std::string_view name;
    double bytes = 0;              // read and written, of copies
    const Range* range = nullptr;  // of launches
};

/// Queue and times of an enqueued command.
struct Enqueued {
    bool transfer = false;               // on the transfer queue
    std::int64_t before = 0, after = 0;  // host times around the call, ns
    bool bracketed = true;               // the command was queued between `before` and `after`
    cl::Event event = {};
};

/// A completed command of a trace. Names are indices of ProfilerState::names.
struct CommandRecord {
    std::uint32_t name, scope, operator_;
    bool transfer, launch, f64;
    std::uint64_t start, end;  // device time, ns
    std::int64_t enqueued;     // host time, ns; 0: unknown
    double flops, bytes;
    Extent global, local;
};

struct MemoryRecord {
    std::int64_t at;  // host time, ns
    std::uint64_t in_use, cached;
};

/// Owned by a Profiler and, while it runs, by the device. Events are read in batches, so that a long run stores only
/// sums, and at most as many commands as a trace may have.
class ProfilerState {
  public:
    /// @param memory,finish ask for the statistics of the memory pool, and synchronise the queues
    ProfilerState(const DeviceContext& of, std::size_t max_events, std::function<MemoryStats()> memory,
                  std::function<void()> finish);
    ~ProfilerState();
    ProfilerState(const ProfilerState&) = delete;
    ProfilerState& operator=(const ProfilerState&) = delete;

    void add(const Command& command, Enqueued&& enqueued);
    /// Reads the events of completed commands; with `all`, waits for the rest.
    void collect(bool all);
    /// Excludes later commands from the trace; those already enqueued are still read.
    void stop();

    struct Sum {
        std::int64_t calls = 0;
        double seconds = 0, longest = 0, flops = 0, bytes = 0;
    };

    const DeviceContext& device;
    const std::size_t event_limit;
    std::mutex mutex;  // guards all members below
    std::map<std::string, Sum, std::less<>> sums;
    std::vector<CommandRecord> commands;
    std::vector<MemoryRecord> memory;
    std::uint64_t commands_dropped = 0, memory_dropped = 0;
    std::deque<std::string> names;
    DeviceClock clock;
    const std::int64_t begin = now_ns();
    std::int64_t end = 0;  // 0 while it runs

  private:
    struct Entry {
        std::uint32_t name, scope;
        bool launch;
        Extent global, local;
        double bytes;
        std::shared_ptr<OperatorRun> run;
        Enqueued enqueued;
    };
    /// Partial results of an operator's launches until all of them have completed.
    struct Tally {
        std::shared_ptr<OperatorRun> run;
        std::size_t pending_commands = 0;
        struct Launch {
            std::uint32_t name;
            double seconds;
            std::size_t record;  // in `commands`, or kNone
        };
        std::vector<Launch> launches;
    };
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    std::uint32_t number_of(std::string_view text);
    void read(const Entry& entry);
    void credit(const Tally& tally);

    std::function<MemoryStats()> memory_stats_;
    std::function<void()> finish_;
    std::vector<Entry> pending_;
    std::unordered_map<const OperatorRun*, Tally> tallies_;
    std::unordered_map<std::string_view, std::uint32_t> numbers_;  // views of `names`
    bool stopped_ = false;
};

/// While an instance lives, no profiler observes what this thread enqueues.
class Unprofiled {
  public:
    Unprofiled();
    ~Unprofiled();
    Unprofiled(const Unprofiled&) = delete;
    Unprofiled& operator=(const Unprofiled&) = delete;
    static bool current() noexcept;
};

}  // namespace declivity::detail
