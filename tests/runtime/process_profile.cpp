// no-oclgrind: it starts child processes, which Oclgrind does not see
//
// DECLIVITY_PROFILE: the trace of a whole process, in child processes.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <doctest/doctest.h>
#include <tests/support/child.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/trace.hpp>
#include <tests/runtime/test_kernels.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

std::size_t count_of(const std::string& text, const std::string& word) {
    std::size_t count = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
    return count;
}

}  // namespace

TEST_CASE("process profile: child ends with a busy queue" * doctest::skip()) {
    const Device device = Device::best();
    const Scope scope("Child");
    for (int i = 0; i < 10; ++i) run_slow_kernel(device, 2000000);
    CHECK(profiling());
}

TEST_CASE("process profile: child changes its directory and calls exit" * doctest::skip()) {
    run_slow_kernel(Device::best(), 1000);
    CHECK(Device::best() == Device::best());
    std::filesystem::current_path("/");
    static const Buffer static_buffer(Device::best(), 1000);  // destroyed after the file is written, or before
    std::exit(3);                                             // NOLINT: that is what is tested
}

TEST_CASE("process profile: child also uses a Profiler" * doctest::skip()) {
    const Device device = Device::best(), other = fresh_device();
    run_slow_kernel(device, 1000);
    Profiler profiler(device);
    run_slow_kernel(device, 1000);
    run_slow_kernel(other, 1000);
    CHECK(profiler.rows().size() == 2);
    CHECK(profiler.rows().at(0).calls == 1);
}

TEST_CASE("process profile: everything enqueued is in the file when the process has ended") {
    const TempFolder folder;
    const auto path = folder / "trace.json";
    const auto result =
        run_child("process profile: child ends with a busy queue", {{"DECLIVITY_PROFILE", path.string()}});
    INFO(result.output);
    CHECK(result.code == 0);
    REQUIRE(folder.names() == std::vector<std::string>{"trace.json"});
    const Json trace = read_json(path);
    const auto kernels = events(trace, "X", "kernel");
    CHECK(kernels.size() == 10);
    for (const Json& kernel : kernels) CHECK(kernel.at("args").at("scope") == "Child");
    CHECK(events(trace, "X", "copy").size() == 10);
    CHECK(std::ranges::count(events(trace, "X", "module"), "Child", [](const Json& json) { return json.at("name"); }) ==
          1);
    CHECK_FALSE(events(trace, "C").empty());
}

TEST_CASE("process profile: std::exit from another directory writes it to the intended path, and keeps the exit code") {
    const TempFolder folder;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    const auto result =
        run_child("process profile: child changes its directory and calls exit", {{"DECLIVITY_PROFILE", "trace.json"}});
    std::filesystem::current_path(before);
    INFO(result.output);
    CHECK(result.code == 3);
    REQUIRE(folder.names() == std::vector<std::string>{"trace.json"});
    CHECK(events(read_json(folder / "trace.json"), "X", "kernel").size() == 1);
}

TEST_CASE("process profile: works together with Profilers, on every device") {
    const TempFolder folder;
    const auto result =
        run_child("process profile: child also uses a Profiler", {{"DECLIVITY_PROFILE", (folder / "t").string()}});
    INFO(result.output);
    CHECK(result.code == 0);
    const Json trace = read_json(folder / "t");
    CHECK(events(trace, "X", "kernel").size() == 3);
    CHECK(trace.at("otherData").at("devices").size() >= 2);
}

TEST_CASE("process profile: an unwritable file is reported, and changes nothing") {
    const TempFolder folder;
    for (const std::string& path : {(folder / "missing/trace.json").string(), folder.path().string()}) {
        const auto result =
            run_child("process profile: child changes its directory and calls exit", {{"DECLIVITY_PROFILE", path}});
        INFO(result.output);
        CHECK(result.code == 3);
        CHECK(count_of(result.output, "declivity: DECLIVITY_PROFILE: cannot ") == 1);
        CHECK(count_of(result.output, path) == 1);
    }
    const auto unprofiled =
        run_child("process profile: child changes its directory and calls exit", {{"DECLIVITY_PROFILE", ""}});
    CHECK(unprofiled.code == 3);
    CHECK(count_of(unprofiled.output, "DECLIVITY_PROFILE") == 0);
    CHECK(folder.names().empty());
}
