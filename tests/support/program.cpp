#include "tests/support/program.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

namespace declivity::test {
namespace {

/// The program in the same folder as this one.
std::filesystem::path program() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "declivity"; }

}  // namespace

bool program_built() {
    if (std::filesystem::exists(program())) return true;
    skip("the program declivity was not built");
    return false;
}

ProgramRun run_program(const std::string& arguments, const std::string& environment) {
    const TempFolder folder;
    const std::string errors = folder / "errors";
    std::FILE* pipe = popen(
        ("env " + environment + " '" + program().string() + "' " + arguments + " 2>'" + errors + "'").c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("popen failed");
    ProgramRun result;
    std::array<char, 4096> bytes{};
    for (std::size_t count = 0; (count = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
        result.out.append(bytes.data(), count);
    const int status = pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const Bytes bytes_of_stderr = get_file(errors);
    result.error.assign(bytes_of_stderr.begin(), bytes_of_stderr.end());
    return result;
}

}  // namespace declivity::test
