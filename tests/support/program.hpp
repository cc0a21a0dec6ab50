// Runs the `declivity` tool like a user.
#pragma once

#include <string>

#include <tests/support/temp_folder.hpp>

namespace declivity::test {

/// Returns whether the tool is in the folder of this program; calls skip() if not.
bool program_built();

struct ProgramRun {
    int code = 0;  ///< exit code; 128 + number if killed by a signal
    std::string out, error;
};

/// @param environment arguments of env(1), such as "NAME=value"
ProgramRun run_program(const std::string& arguments, const std::string& environment = "");

/// Environment of a process without drivers. @param empty a folder without files
inline std::string without_devices(const TempFolder& empty) {
    return "-u OCL_ICD_FILENAMES -u DECLIVITY_DEVICE OCL_ICD_VENDORS='" + empty.path().string() + "'";
}

}  // namespace declivity::test
