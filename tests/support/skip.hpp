// Tests that cannot run here say so, in the output and in the exit code, instead of passing in silence.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace declivity::test {

/// Notes that the running test case, or a part of it, cannot run, and why. Return from the case after it.
void skip(std::string_view reason);
/// How often skip() was called.
int skipped_count();

/// Path of a file or folder of real data below the folder that DECLIVITY_DATA names; when it is not there, calls
/// skip() and returns nothing.
std::optional<std::filesystem::path> real_data(const std::string& relative);

}  // namespace declivity::test
