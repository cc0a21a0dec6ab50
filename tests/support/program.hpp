// The program `declivity`, as a user runs it.
#pragma once

#include <string>

namespace declivity::test {

/// Whether there is one beside this program; calls skip() if not.
bool program_built();

struct ProgramRun {
    int code = 0;  ///< exit code; 128 + number when a signal ended it
    std::string out, error;
};

/// @param environment words of env(1), such as "NAME=value"
ProgramRun run_program(const std::string& arguments, const std::string& environment = "");

}  // namespace declivity::test
