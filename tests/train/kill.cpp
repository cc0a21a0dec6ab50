// A training that is killed at any moment leaves a checkpoint from which the rest gives the very same numbers.
// no-oclgrind: runs other programs
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include <declivity/io/safetensors.hpp>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// The sample beside this test program.
std::filesystem::path mnist() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mnist"; }

pid_t start(const std::vector<std::string>& arguments) {
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<char*> raw;
    for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
    raw.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execv(raw[0], raw.data());
    _exit(127);
}

int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("killed at random moments, resumed, the same to the bit") {
    if (!std::filesystem::exists(mnist())) {
        test::skip("the sample mnist was not built");
        return;
    }
    const test::TempFolder folder;
    const std::string unbroken = folder.path() / "unbroken", broken = folder.path() / "broken";
    const auto command = [&](const std::string& file, bool resume) {
        std::vector<std::string> out{mnist(), "--limit", "640", "--batch", "32", "--epochs", "4", "--save-every", "3", "--save", file};
        if (resume) out.insert(out.end(), {"--load", file});
        return out;
    };
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(finish(start(command(unbroken, false))) == 0);
    const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

    const char* wanted = std::getenv("DECLIVITY_KILLS");
    const int kills = wanted != nullptr ? std::atoi(wanted) : 4;
    std::mt19937_64 random(1);
    int killed = 0;
    for (int i = 0; i < kills; ++i) {
        const bool resume = std::filesystem::exists(broken);
        const pid_t child = start(command(broken, resume));
        const double after = whole * static_cast<double>(random() % 1000) / 1000;
        std::this_thread::sleep_for(std::chrono::duration<double>(after));
        kill(child, SIGKILL);
        killed += finish(child) == -SIGKILL;
        if (std::filesystem::exists(broken)) CHECK_NOTHROW((void)io::read_safetensors(broken));
        if (i % 5 == 4) std::filesystem::remove(broken);  // so that early moments are tried again
    }
    MESSAGE("killed ", killed, " of ", kills, " runs");
    CHECK(killed > 0);
    REQUIRE(finish(start(command(broken, std::filesystem::exists(broken)))) == 0);
    CHECK(io::read_safetensors(broken).arrays == io::read_safetensors(unbroken).arrays);
}
