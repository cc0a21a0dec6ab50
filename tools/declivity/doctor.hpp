// The subcommand `declivity doctor`: a self-test of a device.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace declivity::tools {

/// Exit codes of `declivity doctor`.
inline constexpr int kExitPassed = 0, kExitFailed = 1, kExitSkipped = 2;

/// Adds the subcommand; the returned function runs it and returns the exit code.
std::function<int()> add_doctor(CLI::App& app);

}  // namespace declivity::tools
