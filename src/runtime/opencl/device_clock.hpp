// Layer 1, private. Converts times of a device's clock to host times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opencl.hpp"

namespace declivity::detail {

/// Estimates the offset between the two clocks and its drift. All times are in ns; host times are those of now_ns().
class DeviceClock {
  public:
    /// @param version the device's CL_DEVICE_VERSION, "OpenCL 3.0 ..."
    DeviceClock(cl_device_id device, const std::string& version);

    /// Queries the device's time if its driver (OpenCL 2.1) supports it.
    void sample();
    /// Adds an answer of the device, queried between the host times `before` and `after`.
    void add_sample(std::uint64_t device_time, std::int64_t before, std::int64_t after);
    /// Adds a command that was queued at `queued` by the device's clock, and between the host times `before` and
    /// `after`.
    void add_queued_command(std::uint64_t queued, std::int64_t before, std::int64_t after);
    /// Returns the host time; without any observation the device time itself.
    [[nodiscard]] std::int64_t to_host(std::uint64_t device_time) const;

  private:
    struct Anchor {
        std::uint64_t at;     // device time
        std::int64_t offset;  // host - device
    };
    /// Bounds from the commands of about one second: the offset is within [lowest, highest].
    struct Window {
        std::uint64_t first = 0, last = 0;
        std::int64_t lowest = 0, highest = 0;
        bool any = false;
        /// The estimate at the middle of the window; the bounds may cross if the clocks drift fast.
        [[nodiscard]] Anchor anchor() const { return {first + (last - first) / 2, lowest + (highest - lowest) / 2}; }
    };

    cl_device_id device_;
    bool has_timer_;
    std::vector<Anchor> timer_anchors_, command_anchors_;  // from the device timer; from commands
    Window window_;
};

}  // namespace declivity::detail
