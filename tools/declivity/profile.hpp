// The subcommand that reads traces of Profiler::write_trace and DECLIVITY_PROFILE.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace declivity::tools {

/// Adds the subcommand; the returned function runs it.
std::function<int()> add_profile(CLI::App& app);

}  // namespace declivity::tools
