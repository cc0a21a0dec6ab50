// no-oclgrind: it runs cases of other tests in child processes, with the driver that prints
//
// Correct programs print nothing: a driver that reports build errors on standard error must see none, whatever is
// compiled.
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/child.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// Mesa 22.3's warning about kernels that read an argument within a branch, which is uniform like all arguments.
constexpr std::string_view kOfRusticl = "MESA: warning: Treating load_kernel_arg in control flow as uniform";

/// The output of a run of these cases except doctest's lines, with empty caches, including the driver's cache for PoCL.
std::string output_of(const std::string& test_case) {
    const test::TempFolder folder;
    const bool full = std::getenv("DECLIVITY_FULL") != nullptr;  // the same kernels, for more shapes
    const auto result =
        test::run_child(test_case, {{"DECLIVITY_CACHE_DIR", (folder.path() / "programs").string()},
                                    {"POCL_CACHE_DIR", (folder.path() / "driver").string()},
                                    {"DECLIVITY_CASES", full ? std::nullopt : std::optional<std::string>("small")}});
    CHECK((result.code == 0 || result.code == 77));  // 77: parts of it cannot run here, and report it
    std::string child_output, line;
    for (std::istringstream lines(result.output); std::getline(lines, line);)
        if (!line.empty() && !line.starts_with("[doctest]") && !line.starts_with("=====") &&
            !line.starts_with("SKIPPED: ") && !line.starts_with(kOfRusticl))
            child_output += line + '\n';
    return child_output;
}

}  // namespace

TEST_CASE("silence: child process that prints a message" * doctest::skip()) {
    CHECK(true);
    std::fputs("1 error generated.\n", stderr);
}

TEST_CASE("silence: output on standard error is detected") {
    CHECK(output_of("silence: child process that prints a message") == "1 error generated.\n");
}

TEST_CASE(
    "silence: every function of the catalogue, forward and backward, casts, products of f16 and bf16, a training") {
    std::vector<const char*> cases = {"catalogue: values match plain C++, dense and strided",
                                      "elementwise: casts between all types",
                                      "reduced precision: products and their gradients", "trainer: learns and reports"};
    const bool fp64 = test::device().info().fp64, full = std::getenv("DECLIVITY_FULL") != nullptr;
    if (fp64) cases.push_back("catalogue: gradients of f32 match those of f64");
    if (full)
        for (const char* case_name :
             {"elementwise: every function, in every supported type, on random values", "reduce: integers are exact",
              "reduce: f16 and bf16 accumulate in f32 and are rounded once", "arange: integers are exact in every type",
              "reduced precision: functions without 16-bit kernels compute in f32 and round once"})
            cases.push_back(case_name);
    if (full && fp64)
        for (const char* case_name :
             {"catalogue: gradients match central differences, dense and strided", "argmax: matches the reference"})
            cases.push_back(case_name);
    for (const char* test_case : cases) {
        CAPTURE(std::string(test_case));
        CHECK(output_of(test_case) == "");
    }
    if (!fp64) return test::skip("cases in f64: the device has no double precision");
}
