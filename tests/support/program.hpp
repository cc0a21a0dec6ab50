// Runs the `declivity` tool like a user.
#pragma once

#include <string>

namespace declivity::test {

/// Returns whether the tool is in the folder of this program; calls skip() if not.
bool program_built();

struct ProgramRun {
    int code = 0;  ///< exit code; 128 + number if killed by a signal
    std::string out, error;
};

/// @param environment arguments of env(1), such as "NAME=value"
ProgramRun run_program(const std::string& arguments, const std::string& environment = "");

}  // namespace declivity::test
