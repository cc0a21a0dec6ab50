// Writes the programs of all kernels that a simt device may use to a folder, for GPU compilers (check.cpp).
//
//   gpu_compile_collect FOLDER [--all] [--but] [PART...]
//
// Goes through the operator catalogue like the strategy chooser and the tuner: all applicable strategies with all
// variants, all types, aligned and odd sizes, with and without epilogues. --all: every combination; by default
// redundant ones are skipped. The parts (collect_*.cpp) are those that it prints; --but: all parts except these. The
// kernels are created with DECLIVITY_KERNEL_STYLE=simt on any device; nothing runs, since launches are intercepted.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <CL/cl.h>

#include "tests/gpu_compile/collect.hpp"
#include "tests/support/real_function.hpp"

// A symbol defined by the program overrides that of a shared library.
extern "C" __attribute__((visibility("default"))) cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel,
                                                                                cl_uint, const size_t*, const size_t*,
                                                                                const size_t*, cl_uint, const cl_event*,
                                                                                cl_event* event) {
    static auto* marker = declivity::test::real<decltype(clEnqueueMarkerWithWaitList)>("clEnqueueMarkerWithWaitList");
    return event != nullptr ? marker(queue, 0, nullptr, event) : CL_SUCCESS;
}

namespace declivity::gpu_compile {
namespace {

bool all_of_them = false;

std::map<std::string, void (*)(), std::less<>>& parts() {
    static std::map<std::string, void (*)(), std::less<>> all;
    return all;
}

}  // namespace

Part::Part(std::string name, void (*run)()) { parts().emplace(std::move(name), run); }

bool all_combinations() { return all_of_them; }

}  // namespace declivity::gpu_compile

using namespace declivity::gpu_compile;

int main(int argc, char** argv) try {
    if (argc < 2) {
        std::fputs("usage: gpu_compile_collect FOLDER [--all] [--but] [PART...]\n", stderr);
        return 2;
    }
    std::set<std::string_view> selected(argv + 2, argv + argc);
    all_of_them = selected.erase("--all") > 0;
    const bool excluded = selected.erase("--but") > 0;
    const std::filesystem::path folder = argv[1], kernels = folder / "kernels";
    std::filesystem::remove_all(kernels);
    std::filesystem::create_directories(kernels);
    setenv("DECLIVITY_DUMP_KERNELS", kernels.c_str(), 1);
    setenv("DECLIVITY_KERNEL_STYLE", "simt", 1);
    setenv("DECLIVITY_CACHE_DIR", "", 1);
    setenv("DECLIVITY_TUNING_FILE", "", 1);
    for (const char* name :
         {"DECLIVITY_CONV2D", "DECLIVITY_MATMUL", "DECLIVITY_TUNE", "DECLIVITY_FUSION", "DECLIVITY_KERNEL_DIR"})
        unsetenv(name);
    setenv("POCL_CACHE_DIR", (folder / "pocl").c_str(), 1);
    const auto count = [&] { return std::distance(std::filesystem::directory_iterator(kernels), {}); };
    const bool only_some = !selected.empty();
    for (const auto& [name, part] : parts()) {
        if (only_some && (selected.erase(name) == 0) != excluded) continue;
        const auto before = count();
        part();
        std::printf("%-20s %4td kernels\n", name.c_str(), count() - before);
        std::fflush(stdout);
    }
    for (const std::string_view name : selected)
        std::fprintf(stderr, "gpu_compile_collect: there is no part %s\n", std::string(name).c_str());
    return selected.empty() ? 0 : 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_compile_collect: %s\n", error.what());
    return 1;
}
