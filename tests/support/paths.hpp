// Location of the tests' files.
#pragma once

#include <filesystem>

namespace declivity::test {

/// The folder tests/ of the sources. Not from __FILE__, which compiler caches shorten.
std::filesystem::path source_folder();

}  // namespace declivity::test
