// no-oclgrind: it runs others' cases in processes of their own, with the driver that speaks
//
// Correct programs print nothing: drivers that count the errors of a build on standard error are given none to count,
// whatever is compiled anew.
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

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

TEST_CASE(
    "silence: every function of the catalogue, forward and backward, every elementwise function, type and cast, "
    "reductions, a training") {
    for (const char* test_case :
         {"catalogue: values agree with plain C++, dense and strided",
          "elementwise: every function, in every type it takes, on random values",
          "elementwise: casts between all types", "reductions of integers are exact",
          "reductions of halves are those of f32, rounded once", "arange: whole numbers are exact in every type",
          "halves: functions without kernels for them compute in f32 and round once",
          "halves: products and their gradients", "training learns and reports"}) {
        CAPTURE(std::string(test_case));
        CHECK(words_of(test_case) == "");
    }
    if (!test::device().info().fp64) return test::skip("cases in f64: the device has no double precision");
    for (const char* test_case :
         {"catalogue: gradients of f32 agree with those of f64", "argmax agrees with the reference"}) {
        CAPTURE(std::string(test_case));
        CHECK(words_of(test_case) == "");
    }
    // Small cases leave it out; its kernels are those of the comparison of f32 with f64, for more shapes.
    if (std::getenv("DECLIVITY_FULL") != nullptr)
        CHECK(words_of("catalogue: gradients agree with central differences, dense and strided") == "");
}
