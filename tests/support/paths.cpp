#include "tests/support/paths.hpp"

namespace declivity::test {

std::filesystem::path source_folder() { return DECLIVITY_TEST_SOURCES; }

}  // namespace declivity::test
