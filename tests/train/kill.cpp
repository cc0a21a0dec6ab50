// A training that is killed at any moment leaves a checkpoint from which the rest gives the very same numbers.
// no-oclgrind: runs other programs
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
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
        std::vector<std::string> out{mnist(), "--limit",      "640", "--batch", "32", "--epochs",
                                     "4",     "--save-every", "3",   "--save",  file};
        if (resume) out.insert(out.end(), {"--load", file});
        return out;
    };
    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    auto begin = Clock::now();
    REQUIRE(finish(start(command(unbroken, false))) == 0);
    double whole = since(begin);

    const char* wanted = std::getenv("DECLIVITY_KILLS");
    const int kills = wanted != nullptr ? std::atoi(wanted) : 4;
    std::mt19937_64 random(1);
    int killed = 0;
    for (int tries = 0; killed < kills && tries < 20 * kills; ++tries) {
        const pid_t child = start(command(broken, std::filesystem::exists(broken)));
        const double after = whole * static_cast<double>(random() % 1000) / 1000;
        begin = Clock::now();
        bool ended = false;
        while (!ended && since(begin) < after) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ended = waitpid(child, nullptr, WNOHANG) == child;
        }
        if (ended) {  // it was faster than the first one, which compiled; begin again
            whole = std::min(whole, since(begin));
            std::filesystem::remove(broken);
            continue;
        }
        kill(child, SIGKILL);
        killed += finish(child) == -SIGKILL;
        if (std::filesystem::exists(broken)) CHECK_NOTHROW((void)io::read_safetensors(broken));
        if (killed % 5 == 4) std::filesystem::remove(broken);  // so that early moments are tried again
    }
    MESSAGE("killed ", killed, " of ", kills, " runs");
    CHECK(killed == kills);
    REQUIRE(finish(start(command(broken, std::filesystem::exists(broken)))) == 0);
    CHECK(io::read_safetensors(broken).arrays == io::read_safetensors(unbroken).arrays);
}
