// Layer 1, private. A trace as `declivity profile` needs it: sums by group and device, and no events, so that size does
// not matter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/runtime/ceilings.hpp>

namespace declivity::detail {

/// What has a sum of its own: a kernel, a module's path, or an operator.
enum class TraceBy : std::uint8_t { kernel, module, function };

struct TraceSum {
    std::int64_t calls = 0;
    double seconds = 0;
    double flops_f32 = 0, flops_f64 = 0, bytes = 0;
};

struct TracedDevice {
    std::string id, name, platform, driver;
    Ceilings ceilings;           // 0 where they were not measured
    double first = 0, last = 0;  // seconds, of its commands
    std::map<std::string, TraceSum> groups;
};

/// Of devices that have commands.
struct TraceSummary {
    std::string version;
    std::vector<TracedDevice> devices;
    std::uint64_t commands_left_out = 0;
};

/// Exported for `declivity profile`, which may be linked with the shared library.
/// @throws IoError, FormatError
DECLIVITY_API TraceSummary read_trace(const std::string& path, TraceBy by);

}  // namespace declivity::detail
