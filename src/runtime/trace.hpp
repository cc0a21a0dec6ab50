// Layer 1, private. Writes profiles as trace files for ui.perfetto.dev and chrome://tracing (Trace Event Format).
#pragma once

#include <filesystem>
#include <span>

#include <declivity/runtime/ceilings.hpp>

#include "opencl/profiler_state.hpp"

namespace declivity::detail {

struct TraceDevice {
    ProfilerState* profile;  // collected
    Ceilings ceilings;       // if they were measured
};

/// @throws IoError if no file can be created there
void check_trace_place(const std::filesystem::path& path);

/// Written completely or not at all.
/// @throws IoError
void write_trace(const std::filesystem::path& path, std::span<const TraceDevice> devices);

}  // namespace declivity::detail
