// Tests that cannot run here report it in the output and in the exit code, instead of passing silently.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace declivity::test {

/// Records that the running test case, or a part of it, cannot run, and why. Return from the test case afterwards.
void skip(std::string_view reason);
/// Number of calls of skip().
int skipped_count();

/// Path of a file or folder of real data below the folder DECLIVITY_DATA; if it is missing, calls skip() and returns
/// nullopt.
std::optional<std::filesystem::path> real_data(const std::string& relative);

}  // namespace declivity::test
