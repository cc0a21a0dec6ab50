// The subcommand `declivity doctor`: a self-test of a device.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace declivity::tools {

/// What `declivity doctor` returns.
inline constexpr int kAllRight = 0, kSomethingWrong = 1, kNothingExamined = 2;

/// Adds it to the program; the function it gives runs it, and returns the exit code.
std::function<int()> add_doctor(CLI::App& app);

}  // namespace declivity::tools
