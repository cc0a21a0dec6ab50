// Layer 1, private. From times on a device's clock to times on the host's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opencl.hpp"

namespace declivity::detail {

/// Learns how far the two clocks are apart, and how they drift. All times are ns; the host's are now_ns().
class DeviceClock {
  public:
    /// @param version what the device says of itself, "OpenCL 3.0 ..."
    DeviceClock(cl_device_id device, const std::string& version);

    /// Asks the device for its time, where its driver (OpenCL 2.1) can tell.
    void ask();
    /// Its answer; the host asked between `before` and `after`.
    void told(std::uint64_t device_time, std::int64_t before, std::int64_t after);
    /// A command was queued at `queued` by the device's clock, and between `before` and `after` by the host's.
    void saw_queued(std::uint64_t queued, std::int64_t before, std::int64_t after);
    /// The host's time; before anything is known that of the device.
    [[nodiscard]] std::int64_t to_host(std::uint64_t device_time) const;

  private:
    struct Anchor {
        std::uint64_t at;     // device time
        std::int64_t offset;  // host - device
    };
    /// What the commands of about a second say: the offset lies within [lowest, highest].
    struct Window {
        std::uint64_t first = 0, last = 0;
        std::int64_t lowest = 0, highest = 0;
        bool any = false;
        /// Where clocks drift apart faster than that, of the middle of the window.
        [[nodiscard]] Anchor anchor() const { return {first + (last - first) / 2, lowest + (highest - lowest) / 2}; }
    };

    cl_device_id device_;
    bool tells_;
    std::vector<Anchor> told_, seen_;  // by asking; from commands
    Window window_;
};

}  // namespace declivity::detail
