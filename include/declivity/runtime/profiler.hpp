// Layer 1. Profiler: calls, device time and work of each kernel.
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

/// @addtogroup runtime
/// @{

struct ProfilerOptions {
    /// Maximum number of commands, of host spans and of memory events (each) stored for write_trace(), about 150 bytes
    /// each; later events are dropped. rows() counts all.
    std::size_t max_events = 500'000;
};

struct TraceOptions {
    bool ceilings = false;  ///< measures peak throughput (runtime/ceilings.hpp), for analysis on another machine
};

/// Measures every launch and copy on a device from its construction to `stop()` or its destruction.
class DECLIVITY_API Profiler {
  public:
    /// @throws ValueError if another Profiler is active on the device; Unsupported for a wrapped queue without
    /// profiling enabled
    explicit Profiler(const Device& device, const ProfilerOptions& options = {});
    ~Profiler();
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    struct Row {
        std::string name;  ///< kernel, or "copy to device", "copy to host", "copy", "fill"
        std::int64_t calls = 0;
        double seconds = 0;  ///< total seconds of all calls
        double longest = 0;  ///< seconds of the longest call
        double flops = 0;    ///< sum of the work declared by operators (runtime/scope.hpp, Work)
        double bytes = 0;
    };
    /// Ends profiling; later launches are not counted.
    void stop();
    /// One row per kernel, by descending total time. Synchronises with the device.
    [[nodiscard]] std::vector<Row> rows();
    /// The rows as a table: kernel, calls, total ms, mean us, longest us, GFLOP/s, GB/s, share of the time.
    [[nodiscard]] std::string table();
    /// Writes a trace for ui.perfetto.dev, chrome://tracing and `declivity profile`: commands of the device's queues,
    /// host spans of all threads, memory of the pool. Synchronises with the device. The file is written atomically.
    /// @throws IoError
    void write_trace(const std::filesystem::path& path, const TraceOptions& options = {});

  private:
    std::shared_ptr<detail::ProfilerState> state_;
};

/// @}

}  // namespace declivity
