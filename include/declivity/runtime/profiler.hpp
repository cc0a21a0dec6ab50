// Layer 1. How often each kernel ran, how long it took by the device's own clock, and what it did meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
class ProfilerState;
}

struct ProfilerOptions {
    /// Commands, spans of the host and changes of memory, of each, that write_trace() can tell of: the first ones, of
    /// about 150 bytes each. rows() counts all.
    std::size_t max_events = 500'000;
};

struct TraceOptions {
    bool ceilings =
        false;  ///< measure what the device does at most (runtime/ceilings.hpp), for a reader on another machine
};

/// Times every launch and copy on a device from its construction to `stop()` or its destruction.
class DECLIVITY_API Profiler {
  public:
    /// @throws ValueError while another Profiler runs on the device; Unsupported for a queue of yours that does not
    /// profile
    explicit Profiler(const Device& device, const ProfilerOptions& options = {});
    ~Profiler();
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    struct Row {
        std::string name;  ///< kernel, or "copy to device", "copy to host", "copy", "fill"
        std::int64_t calls = 0;
        double seconds = 0;  ///< sum over the calls
        double longest = 0;  ///< seconds of the longest call
        double flops = 0;    ///< sum of what operators say that they do (runtime/scope.hpp, Work)
        double bytes = 0;
    };
    /// Ends the recording; later launches are not counted.
    void stop();
    /// One row a kernel, the most time first. Waits for the device.
    [[nodiscard]] std::vector<Row> rows();
    /// The rows as a table: kernel, calls, total ms, mean us, longest us, GFLOP/s, GB/s, share of the time.
    [[nodiscard]] std::string table();
    /// Writes what happened so far for ui.perfetto.dev, chrome://tracing and `declivity profile`: commands of the
    /// device's queues, spans of the host's threads, memory of the pool. Waits for the device. Whole or not at all.
    /// @throws IoError
    void write_trace(const std::filesystem::path& path, const TraceOptions& options = {});

  private:
    std::shared_ptr<detail::ProfilerState> state_;
};

}  // namespace declivity
