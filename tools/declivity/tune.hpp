// The subcommand `declivity tune`.
#pragma once

#include <functional>
#include <memory>

#include <CLI/CLI.hpp>

namespace declivity::tools {

/// Adds it to the program; the function it gives runs it, and returns the exit code.
std::function<int()> add_tune(CLI::App& app);

}  // namespace declivity::tools
