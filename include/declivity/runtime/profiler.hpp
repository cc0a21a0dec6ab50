// Floor 1. How often each kernel ran and how long it took, by the device's own clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
struct ProfilerState;
}

/// Times every launch and copy on a device from its construction to `stop()` or its destruction.
class DECLIVITY_API Profiler {
  public:
    explicit Profiler(const Device& device);
    ~Profiler();
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    struct Row {
        std::string name;          ///< kernel, or "copy to device", "copy to host", "copy", "fill"
        std::int64_t calls = 0;
        double seconds = 0;        ///< sum over the calls
        double longest = 0;        ///< seconds of the longest call
    };
    /// Ends the recording; later launches are not counted.
    void stop();
    /// One row a kernel, the most time first. Waits for the device.
    [[nodiscard]] std::vector<Row> rows();
    /// The rows as a table: kernel, calls, total ms, mean us, share of the time.
    [[nodiscard]] std::string table();

  private:
    std::shared_ptr<detail::ProfilerState> state_;
};

}  // namespace declivity
