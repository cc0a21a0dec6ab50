// no-oclgrind: it runs others' cases in processes of their own, with the driver that speaks
//
// Correct programs print nothing: drivers that count the errors of a build on standard error are given none to count,
// whatever is compiled anew.
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

/// What Mesa 22.3 says of kernels that read an argument within a branch, which is uniform as all arguments are.
constexpr std::string_view kOfRusticl = "MESA: warning: Treating load_kernel_arg in control flow as uniform";

/// What a run of these cases printed beside doctest's own lines, with caches that are empty at first, the driver's too
/// where it is PoCL.
std::string words_of(const std::string& test_case) {
    const test::TempFolder folder;
    const bool full = std::getenv("DECLIVITY_FULL") != nullptr;  // the same kernels, for more shapes
    const auto result =
        test::run_child(test_case, {{"DECLIVITY_CACHE_DIR", (folder.path() / "programs").string()},
                                    {"POCL_CACHE_DIR", (folder.path() / "driver").string()},
                                    {"DECLIVITY_CASES", full ? std::nullopt : std::optional<std::string>("small")}});
    CHECK((result.code == 0 || result.code == 77));  // 77: parts of it cannot run here, and say so
    std::string words, line;
    for (std::istringstream lines(result.output); std::getline(lines, line);)
        if (!line.empty() && !line.starts_with("[doctest]") && !line.starts_with("=====") &&
            !line.starts_with("SKIPPED: ") && !line.starts_with(kOfRusticl))
            words += line + '\n';
    return words;
}

}  // namespace

TEST_CASE("silence: child process that says something" * doctest::skip()) {
    CHECK(true);
    std::fputs("1 error generated.\n", stderr);
}

TEST_CASE("silence: a word on standard error is seen") {
    CHECK(words_of("silence: child process that says something") == "1 error generated.\n");
}

TEST_CASE("silence: every function of the catalogue, forward and backward, casts, products of halves, a training") {
    std::vector<const char*> cases = {"catalogue: values agree with plain C++, dense and strided",
                                      "elementwise: casts between all types", "halves: products and their gradients",
                                      "training learns and reports"};
    const bool fp64 = test::device().info().fp64, full = std::getenv("DECLIVITY_FULL") != nullptr;
    if (fp64) cases.push_back("catalogue: gradients of f32 agree with those of f64");
    if (full)
        for (const char* more :
             {"elementwise: every function, in every type it takes, on random values",
              "reductions of integers are exact", "reductions of halves are those of f32, rounded once",
              "arange: whole numbers are exact in every type",
              "halves: functions without kernels for them compute in f32 and round once"})
            cases.push_back(more);
    if (full && fp64)
        for (const char* more : {"catalogue: gradients agree with central differences, dense and strided",
                                 "argmax agrees with the reference"})
            cases.push_back(more);
    for (const char* test_case : cases) {
        CAPTURE(std::string(test_case));
        CHECK(words_of(test_case) == "");
    }
    if (!fp64) return test::skip("cases in f64: the device has no double precision");
}
