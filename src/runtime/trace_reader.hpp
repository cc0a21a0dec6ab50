// Layer 1, private. Reads a trace for `declivity profile`: sums by group and device, without storing events, so that
// its size is not limited.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/runtime/ceilings.hpp>

namespace declivity::detail {

/// The key of the sums: kernel, module path, or operator.
enum class TraceKey : std::uint8_t { kernel, module, function };

struct TraceSum {
    std::int64_t calls = 0;
    double seconds = 0;
    double flops_f32 = 0, flops_f64 = 0, bytes = 0;
};

struct TracedDevice {
    std::string id, name, platform, driver;
    Ceilings ceilings;           // 0 if not measured
    double first = 0, last = 0;  // total seconds of its commands
    std::map<std::string, TraceSum> groups;
};

/// Devices that have commands.
struct TraceSummary {
    std::string version;
    std::vector<TracedDevice> devices;
    std::uint64_t commands_dropped = 0;
};

/// Exported for `declivity profile`, which may be linked with the shared library.
/// @throws IoError, FormatError
DECLIVITY_API TraceSummary read_trace(const std::string& path, TraceKey grouping);

}  // namespace declivity::detail
