#include <atomic>
#include <cstdlib>

#include <fmt/format.h>
#include <tests/support/skip.hpp>

namespace declivity::test {
namespace {

std::atomic<int> count = 0;

}  // namespace

void skip(std::string_view reason) {
    ++count;
    fmt::print("SKIPPED: {}\n", reason);
}

int skipped_count() { return count; }

std::optional<std::filesystem::path> real_data(const std::string& relative) {
    const char* folder = std::getenv("DECLIVITY_DATA");
    if (folder == nullptr || *folder == '\0') {
        skip(fmt::format("{} is not available: DECLIVITY_DATA names no folder", relative));
        return std::nullopt;
    }
    const auto path = std::filesystem::path(folder) / relative;
    if (!std::filesystem::exists(path)) {
        skip(fmt::format("{} does not exist (DECLIVITY_DATA={})", path.string(), folder));
        return std::nullopt;
    }
    return path;
}

}  // namespace declivity::test
