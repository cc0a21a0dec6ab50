// Layer 1, private. Profiles as files that ui.perfetto.dev and chrome://tracing open (the Trace Event Format).
#pragma once

#include <filesystem>
#include <span>

#include <declivity/runtime/ceilings.hpp>

#include "profiler_state.hpp"

namespace declivity::detail {

struct TraceDevice {
    ProfilerState* profile;  // collected
    Ceilings ceilings;       // where they were measured
};

/// @throws IoError where no file can be made there
void check_trace_place(const std::filesystem::path& path);

/// Written whole or not at all.
/// @throws IoError
void write_trace(const std::filesystem::path& path, std::span<const TraceDevice> devices);

}  // namespace declivity::detail
