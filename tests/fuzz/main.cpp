// Runs the fuzz targets without a fuzzing engine: on the seeds, on reproducible mutations of them, and on given files.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unistd.h>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "target.hpp"

using namespace declivity::fuzz;

namespace {

// The report of a crash: --target NAME --from ROUND --runs 1 reproduces the input.
char current[256];

extern "C" void report(int signal) {
    const auto ignored = ::write(STDERR_FILENO, current, std::char_traits<char>::length(current));
    (void)ignored;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

bool run(const Target& target, const Bytes& input, const std::string& description, bool valid = false) {
    fmt::format_to_n(current, sizeof current - 1, "fuzz: {} {}\n", target.name, description).out[0] = '\0';
    try {
        if (target.run(input) || !valid) return true;
        fmt::print(stderr, "fuzz: {} {}: a valid file is refused\n", target.name, description);
        return false;
    } catch (const std::exception& error) {
        fmt::print(stderr, "fuzz: {} {}: {}\n", target.name, description, error.what());
        return false;
    }
}

Bytes read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

int usage() {
    fmt::print(
        "declivity_fuzz [--target NAME] [--runs N] [--from ROUND] [FILE ...]\n"
        "declivity_fuzz --seeds FOLDER\n\n"
        "Runs the seeds, N mutations of them for each target, and the files. --seeds writes FOLDER/TARGET/0, 1, ...\n"
        "Targets:");
    for (const Target& target : targets()) fmt::print(" {}", target.name);
    fmt::print("\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    std::string name, seeds_folder;
    std::vector<std::string> files;
    long runs = -1, from = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (!option.starts_with("--")) {
            files.emplace_back(option);
            continue;
        }
        if (i + 1 == argc) return usage();
        const char* value = argv[++i];
        if (option == "--target") name = value;
        else if (option == "--runs") runs = std::atol(value);
        else if (option == "--from") from = std::atol(value);
        else if (option == "--seeds") seeds_folder = value;
        else return usage();
    }
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, report);
    int wrong = 0, used = 0;
    for (const Target& target : targets()) {
        if (!name.empty() && target.name != name) continue;
        ++used;
        const std::vector<Bytes> seeds = target.seeds();
        if (!seeds_folder.empty()) {
            const std::filesystem::path folder = std::filesystem::path(seeds_folder) / target.name;
            std::filesystem::create_directories(folder);
            for (std::size_t i = 0; i < seeds.size(); ++i)
                std::ofstream(folder / std::to_string(i), std::ios::binary)
                    .write(reinterpret_cast<const char*>(seeds[i].data()),
                           static_cast<std::streamsize>(seeds[i].size()));
            continue;
        }
        for (const std::string& file : files) wrong += run(target, read(file), file) ? 0 : 1;
        if (!files.empty()) continue;
        for (std::size_t i = 0; i < seeds.size(); ++i)
            wrong += run(target, seeds[i], fmt::format("seed {}", i), true) ? 0 : 1;
        const long count = runs >= 0 ? runs : target.short_runs;
        for (long round = from; round < from + count && wrong < 10; ++round) {
            Mutator mutator(static_cast<std::uint64_t>(round));
            const Bytes& seed = seeds[mutator.below(seeds.size())];
            wrong += run(target, mutator.change(seed, seeds), fmt::format("--from {}", round)) ? 0 : 1;
        }
    }
    if (used == 0) return usage();
    fmt::print("{} targets, {} faults\n", used, wrong);
    return wrong == 0 ? 0 : 1;
}
