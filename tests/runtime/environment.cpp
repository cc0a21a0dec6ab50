// no-oclgrind: it starts child processes, which Oclgrind does not see
//
// Invalid environment variables are reported with a message at first use.
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/conv2d.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <runtime/environment.hpp>

#include "tests/support/child.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// The message thrown while a variable has this value.
std::string error_of(const std::string& name, const std::string& value, const std::function<void()>& call) {
    const test::Environment set(name, value);
    try {
        call();
    } catch (const ValueError& error) {
        return error.what();
    }
    return "nothing";
}

void open_device() { (void)test::fresh_device(); }

}  // namespace

TEST_CASE("environment: variables of a device") {
    CHECK(error_of("DECLIVITY_KERNEL_STYLE", "tpu", open_device) ==
          "DECLIVITY_KERNEL_STYLE: expected \"simd\" or \"simt\", got \"tpu\"");
    CHECK(error_of("DECLIVITY_STAGING", "bogus", open_device) ==
          "DECLIVITY_STAGING: expected \"plain\" or \"pinned\", got \"bogus\"");
    CHECK(error_of("DECLIVITY_POOL", "exactly", open_device) == "DECLIVITY_POOL: expected \"exact\", got \"exactly\"");
    for (const std::string wrong : {"abc", "-5", "5T", "12 M", "99999999999999999999", "9999999999999G"})
        CHECK(error_of("DECLIVITY_MEMORY_LIMIT", wrong, open_device) ==
              "DECLIVITY_MEMORY_LIMIT: expected bytes, as in 500000000, 500M or 2G, got \"" + wrong + "\"");
    for (const char* name : {"DECLIVITY_KERNEL_STYLE", "DECLIVITY_STAGING", "DECLIVITY_POOL", "DECLIVITY_MEMORY_LIMIT"})
        CHECK(error_of(name, "", open_device) == "nothing");
    CHECK(error_of("DECLIVITY_KERNEL_STYLE", "simt",
                   [] { CHECK(test::fresh_device().kernel_style() == KernelStyle::simt); }) == "nothing");
    CHECK(error_of("DECLIVITY_KERNEL_STYLE", "simd",
                   [] { CHECK(test::fresh_device().kernel_style() == KernelStyle::simd); }) == "nothing");
    for (const char* value : {"plain", "pinned"}) CHECK(error_of("DECLIVITY_STAGING", value, open_device) == "nothing");
    CHECK(error_of("DECLIVITY_MEMORY_LIMIT", "2G", open_device) == "nothing");
}

TEST_CASE("environment: DECLIVITY_KERNEL_DIR") {
    const test::TempFolder folder;
    const Device device = test::device();
    int number = 0;  // a program that was not built before
    const auto compile = [&] {
        (void)Kernel(device,
                     {"finite.cl", "count_step", Defines().set("REAL", "float").set("NUMBER", std::int64_t{++number})});
    };
    const std::string missing = (folder / "none").string(), file = (folder / "file").string();
    test::put_file(file, test::bytes_of(std::string("text")));
    for (const std::string& wrong : {missing, file})
        CHECK(error_of("DECLIVITY_KERNEL_DIR", wrong, compile) ==
              "DECLIVITY_KERNEL_DIR: expected a folder that exists, got \"" + wrong + "\"");
    CHECK(error_of("DECLIVITY_KERNEL_DIR", "", compile) == "nothing");
    CHECK(error_of("DECLIVITY_KERNEL_DIR", folder.path().string(), compile) ==
          "nothing");  // a file missing there comes from the library
}

TEST_CASE("environment: DECLIVITY_DUMP_KERNELS") {
    const test::TempFolder folder;
    const Device device = test::device();
    int number = 0;  // a kernel that was not built before
    const auto make = [&] {
        (void)Kernel(device, {"finite.cl", "count_step",
                              Defines().set("REAL", "float").set("NUMBER_OF_DUMP", std::int64_t{++number})});
    };
    const std::string missing = (folder / "none").string();
    CHECK(error_of("DECLIVITY_DUMP_KERNELS", missing, make) ==
          "DECLIVITY_DUMP_KERNELS: expected a folder that exists, got \"" + missing + "\"");
    CHECK(error_of("DECLIVITY_DUMP_KERNELS", "", make) == "nothing");
    CHECK(folder.names().empty());
    CHECK(error_of("DECLIVITY_DUMP_KERNELS", folder.path().string(), make) == "nothing");
    REQUIRE(folder.names().size() == 1);
    const std::string name = folder.names()[0];
    CHECK(name.starts_with("count_step-"));
    CHECK(name.ends_with(".cl"));
    // The complete program: options, definitions, and the text with all includes.
    const test::Bytes bytes = test::get_file(folder / name);
    const std::string text(bytes.begin(), bytes.end());
    CHECK(text.starts_with("// kernel: count_step\n// file: finite.cl\n// options: -cl-std=CL1.2 "));
    CHECK(text.find("\n#define NUMBER_OF_DUMP " + std::to_string(number) + "\n") != std::string::npos);
    CHECK(text.find("#include \"") == std::string::npos);
    CHECK(text.find("__kernel void count_step(") != std::string::npos);
    // A kernel that is already compiled is not written again; one that does not compile is written too.
    const auto broken = [&] {
        CHECK_THROWS_AS(Kernel(device, {"finite.cl", "count_step", Defines().set("REAL", "no_such_type")}),
                        DeviceError);
    };
    CHECK(error_of("DECLIVITY_DUMP_KERNELS", folder.path().string(), broken) == "nothing");
    CHECK(folder.names().size() == 2);
}

TEST_CASE("environment: strategies") {
    const Tensor a = zeros({40, 40}), image = zeros({1, 16, 12, 12}), filter = zeros({16, 16, 3, 3});
    const auto product = [&] { (void)matmul(a, a).to_vector<float>(); };
    const auto convolution = [&] { (void)conv2d(image, filter).to_vector<float>(); };
    CHECK(error_of("DECLIVITY_MATMUL", "magic", product).starts_with("DECLIVITY_MATMUL: expected one of stream, "));
    CHECK(error_of("DECLIVITY_MATMUL", "magic", product).ends_with("got \"magic\""));
    CHECK(error_of("DECLIVITY_CONV2D", "magic", convolution)
              .starts_with("DECLIVITY_CONV2D: expected one of depthwise_channels_last, "));
    CHECK(error_of("DECLIVITY_CONV2D", "magic", convolution).ends_with("got \"magic\""));
    for (const auto& call : {std::function<void()>(product), std::function<void()>(convolution)})
        CHECK(error_of("DECLIVITY_TUNE", "yes", call) == "DECLIVITY_TUNE: expected 0 or 1, got \"yes\"");
    if (test::device().kernel_style() == KernelStyle::simd)
        CHECK(error_of("DECLIVITY_WINOGRAD", "off", convolution) == "DECLIVITY_WINOGRAD: expected 0 or 1, got \"off\"");
    for (const char* name : {"DECLIVITY_MATMUL", "DECLIVITY_CONV2D", "DECLIVITY_TUNE", "DECLIVITY_WINOGRAD"}) {
        CHECK(error_of(name, "", product) == "nothing");
        CHECK(error_of(name, "", convolution) == "nothing");
    }
    CHECK(error_of("DECLIVITY_WINOGRAD", "1", convolution) == "nothing");
    CHECK(error_of("DECLIVITY_TUNE", "0", convolution) == "nothing");
}

TEST_CASE("environment: output options") {
    // A chain unique to this test, so that its kernel is compiled now.
    const auto chain = [] { (void)(silu(gelu(tanh(square(zeros({5}))))) * 3.25 - 1.5).to_vector<float>(); };
    CHECK(error_of("DECLIVITY_LOG", "kernel", chain) == "DECLIVITY_LOG: expected \"kernels\", got \"kernel\"");
    CHECK(error_of("DECLIVITY_LOG", "", chain) == "nothing");
}

TEST_CASE("environment: switches and numbers") {
    using declivity::detail::environment;
    const auto read_with = [](const char* name, const std::optional<std::string>& value, auto read) {
        const test::Environment set(name, value);
        return read(environment());
    };
    const auto winograd = [](const auto& all) { return all.winograd.get(); };
    const auto tune = [](const auto& all) { return all.tune.get(); };
    const auto limit = [](const auto& all) { return all.memory_limit.get(); };
    for (const std::optional<std::string>& unset : {std::optional<std::string>(), std::optional<std::string>("")}) {
        CHECK(read_with("DECLIVITY_WINOGRAD", unset, winograd));
        CHECK_FALSE(read_with("DECLIVITY_TUNE", unset, tune));
        CHECK_FALSE(read_with("DECLIVITY_MEMORY_LIMIT", unset, limit));
    }
    CHECK(read_with("DECLIVITY_TUNE", "1", tune));
    CHECK_FALSE(read_with("DECLIVITY_WINOGRAD", "0", winograd));
    CHECK(error_of("DECLIVITY_TUNE", "2", [] { (void)environment().tune.get(); }) ==
          "DECLIVITY_TUNE: expected 0 or 1, got \"2\"");
    CHECK(read_with("DECLIVITY_MEMORY_LIMIT", "3K", limit) == 3072);
    CHECK(read_with("DECLIVITY_MEMORY_LIMIT", "17", limit) == 17);
}

TEST_CASE("environment: variables are parsed once") {
    const test::Environment set("DECLIVITY_MEMORY_LIMIT", "5K");
    setenv("DECLIVITY_MEMORY_LIMIT", "6K", 1);
    CHECK(declivity::detail::environment().memory_limit.get() == 5120);
}

TEST_CASE("environment: fusion, child process" * doctest::skip()) {
    // The error comes not at startup but at each use.
    for (int i = 0; i < 2; ++i)
        CHECK_THROWS_WITH_AS((void)(ones({3}) + 1.0).to_vector<float>(), "DECLIVITY_FUSION: expected 0 or 1, got \"2\"",
                             ValueError);
}

TEST_CASE("environment: fusion") {
    const auto result = test::run_child("environment: fusion, child process", {{"DECLIVITY_FUSION", "2"}});
    INFO(result.output);
    CHECK(result.code == 0);
}

TEST_CASE("environment: the program reports the error and fails") {
    if (!test::program_built()) return;
    for (const auto& [set, message] :
         {std::pair<std::string, std::string>{"DECLIVITY_KERNEL_STYLE=tpu",
                                              "DECLIVITY_KERNEL_STYLE: expected \"simd\" or \"simt\", got \"tpu\""},
          {"DECLIVITY_STAGING=bogus", "DECLIVITY_STAGING: expected \"plain\" or \"pinned\", got \"bogus\""},
          {"DECLIVITY_MEMORY_LIMIT=abc",
           "DECLIVITY_MEMORY_LIMIT: expected bytes, as in 500000000, 500M or 2G, got \"abc\""}}) {
        const test::ProgramRun run = test::run_program("devices", set);
        CHECK(run.code == 1);
        CHECK(run.error == "declivity: " + message + "\n");
    }
}
