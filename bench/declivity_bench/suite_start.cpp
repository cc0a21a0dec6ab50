#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "nets.hpp"
#include "report.hpp"
#include "start.hpp"

namespace declivity::bench {
namespace {

namespace fs = std::filesystem;

/// Seconds until the child process reports its first step, with all program caches below `folder`.
double seconds_to_first_step(const fs::path& folder) {
    const std::string caches =
        fmt::format("XDG_CACHE_HOME='{0}' HOME='{0}' CUDA_CACHE_PATH='{0}/cuda'", folder.string());
    const std::string command = fmt::format("env -u DECLIVITY_CACHE_DIR -u POCL_CACHE_DIR {} '{}' --first-step", caches,
                                            fs::read_symlink("/proc/self/exe").string());
    const auto begin = std::chrono::steady_clock::now();
    FILE* child = popen(command.c_str(), "r");
    char line[64] = {};
    const bool has_line = child != nullptr && std::fgets(line, sizeof line, child) != nullptr;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (child == nullptr || pclose(child) != 0 || !has_line)
        throw std::runtime_error("start: the child process failed: " + command);
    return seconds;
}

void run(Report& report) {
    report.begin("start");
    const fs::path folder = fs::temp_directory_path() / fmt::format("declivity_start_{:08x}", std::random_device{}());
    std::vector<double> empty, filled;
    for (int round = 0; round < 3; ++round) {
        fs::remove_all(folder);
        fs::create_directories(folder);
        empty.push_back(seconds_to_first_step(folder));
        (void)seconds_to_first_step(folder);
        for (int repetition = 0; repetition < 3; ++repetition) filled.push_back(seconds_to_first_step(folder));
    }
    fs::remove_all(folder);
    report.note("first step of mnist, caches empty", median(empty), "s");
    report.note("first step of mnist, caches filled", median(filled), "s");
    report.end();
}

const Suite suite("start", "from process start to the end of the first training step", run);

}  // namespace

int first_step() {
    const Net& net = nets().front();
    Training training(net, net.batch);
    training.step();
    default_device().synchronize();
    std::puts("done");
    std::fflush(stdout);
    return 0;
}

}  // namespace declivity::bench
