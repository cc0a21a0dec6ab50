// The subcommand `declivity tune`.
#pragma once

#include <functional>
#include <memory>

#include <CLI/CLI.hpp>

namespace declivity::tools {

/// Adds the subcommand; the returned function runs it and returns the exit code.
std::function<int()> add_tune(CLI::App& app);

}  // namespace declivity::tools
