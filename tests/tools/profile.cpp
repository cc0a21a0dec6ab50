// `declivity profile`: a trace as a table.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/child.hpp>
#include <tests/support/program.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// Words of the line that begins with a word; empty if there is none.
std::vector<std::string> line_of(const std::string& text, const std::string& first) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        if (!line.starts_with(first + " ")) continue;
        std::istringstream rest(line.substr(first.size()));
        std::vector<std::string> words;
        for (std::string word; rest >> word;) words.push_back(word);
        return words;
    }
    return {};
}

using Words = std::vector<std::string>;

// 100 GFLOP/s and 4 GB/s in conv2d_gemm, of 400 f32, 200 f64 and 10 GB/s.
const std::string kTrace = R"({"traceEvents":[
{"ph":"X","cat":"kernel","name":"conv2d_gemm","pid":2,"tid":1,"ts":0,"dur":1000,
"args":{"scope":"Net/0","operator":"conv2d","flops":100000000,"bytes":4000000}},
{"ph":"X","cat":"kernel","name":"conv2d_gemm","pid":2,"tid":1,"ts":1000,"dur":2000,
"args":{"scope":"Net/1","operator":"conv2d","flops":200000000,"bytes":8000000}},
{"ph":"X","cat":"kernel","name":"elementwise","pid":2,"tid":1,"ts":9000,"dur":1000,
"args":{"scope":"Net/1","operator":"relu","flops":1000000,"bytes":8000000}},
{"ph":"X","cat":"kernel","name":"double","pid":2,"tid":1,"ts":8000,"dur":1000,
"args":{"scope":"","operator":"","flops":100000000,"f64":true}}
],"otherData":{"declivity":"0.1.0","devices":[{"pid":2,"id":"0:0","name":"a device of a test","platform":"p",
"driver":"d"CEILINGS}],"left_out":{"commands":LEFT}}})";

std::string with_ceilings(std::string text, const std::string& ceilings, const std::string& left) {
    text.replace(text.find("CEILINGS"), 8, ceilings);
    return text.replace(text.find("LEFT"), 4, left);
}

const std::string kCeilings = R"(,"ceilings":{"flops_f32":4e11,"flops_f64":2e11,"bytes":1e10})";

}  // namespace

TEST_CASE("declivity profile: child process with some work" * doctest::skip()) {
    const Tensor a = uniform({32, 32});
    CHECK(matmul(a, a).to_vector<float>().size() == 1024);
}

TEST_CASE("declivity profile: rates, shares, and percentages of the device's peak") {
    if (!program_built()) return;
    const TempFolder folder;
    put_file(folder / "t.json", bytes_of(with_ceilings(kTrace, kCeilings, "0")));
    const std::string path = fmt::format("'{}'", (folder / "t.json").string());
    const ProgramRun table = run_program("profile " + path);
    CAPTURE(table.out);
    CHECK(table.code == 0);
    CHECK(table.error.empty());
    CHECK(table.out.starts_with(
        "a device of a test (0:0): 4 commands, 5.000 ms of 10.000 ms between the first and the last (50 %)\n"));
    CHECK(table.out.find("400.0 GFLOP/s f32, 200.0 GFLOP/s f64, 10.0 GB/s") != std::string::npos);
    CHECK(line_of(table.out, "conv2d_gemm") == Words{"2", "3.000", "60.0", "1500.0", "100.0", "4.0", "40.0", "memory"});
    CHECK(line_of(table.out, "double") == Words{"1", "1.000", "20.0", "1000.0", "100.0", "-", "50.0", "compute"});
    CHECK(line_of(table.out, "elementwise") == Words{"1", "1.000", "20.0", "1000.0", "1.0", "8.0", "80.0", "memory"});
    CHECK(table.out.find("not in the trace") == std::string::npos);
    const ProgramRun modules = run_program("profile --by module " + path);
    CHECK(line_of(modules.out, "Net/1") == Words{"2", "3.000", "60.0", "1500.0", "67.0", "5.3", "53.3", "memory"});
    CHECK(line_of(modules.out, "(no module)").size() == 8);
    const ProgramRun functions = run_program("profile --by function --no-ceiling " + path);
    CHECK(line_of(functions.out, "conv2d") == Words{"2", "3.000", "60.0", "1500.0", "100.0", "4.0", "-"});
    CHECK(line_of(functions.out, "double").size() == 7);  // without an operator the kernel's name
    CHECK(functions.out.find("measured peak") == std::string::npos);
}

TEST_CASE("declivity profile: reports an unknown peak, and what the trace lacks") {
    if (!program_built()) return;
    const TempFolder folder;
    put_file(folder / "t.json", bytes_of(with_ceilings(kTrace, "", "17")));
    const ProgramRun table = run_program("profile '" + (folder / "t.json").string() + "'");
    CHECK(table.code == 0);
    CHECK(table.out.find("measured peak: unknown, this device is not present") != std::string::npos);
    CHECK(line_of(table.out, "conv2d_gemm").back() == "-");
    CHECK(table.out.find("\n17 later commands are not in the trace, and not counted here\n") != std::string::npos);
}

TEST_CASE("declivity profile: the trace of a process, on this device") {
    if (!program_built()) return;
    const TempFolder folder;
    const auto path = (folder / "t.json").string();
    const auto child = run_child("declivity profile: child process with some work", {{"DECLIVITY_PROFILE", path}});
    INFO(child.output);
    REQUIRE(child.code == 0);
    const Bytes before = get_file(path);
    // DECLIVITY_PROFILE still names the file, which must not be overwritten.
    const ProgramRun table = run_program("profile --by function '" + path + "'", "DECLIVITY_PROFILE='" + path + "'");
    CAPTURE(table.out);
    CHECK(table.code == 0);
    CHECK(table.error.empty());
    CHECK(get_file(path) == before);
    CHECK(table.out.find(Device::best().name()) == 0);
    CHECK(table.out.find("measured peak: ") != std::string::npos);
    const auto product = line_of(table.out, "matmul");
    REQUIRE(product.size() >= 8);
    CHECK((product.back() == "compute" || product.back() == "memory"));
    CHECK(line_of(table.out, "uniform").size() >= 7);
}

TEST_CASE("declivity profile: files that are not traces are one error message") {
    if (!program_built()) return;
    const TempFolder folder;
    put_file(folder / "broken.json", bytes_of("{\"traceEvents\":[{"));
    put_file(folder / "empty.json", bytes_of("{\"traceEvents\":[]}"));
    put_file(folder / "huge.json", bytes_of(R"({"traceEvents":[{"ph":"X","cat":"kernel","ts":1e999}]})"));
    for (const std::string name : {"broken.json", "empty.json", "huge.json", "missing.json", "."}) {
        CAPTURE(name);
        const ProgramRun result = run_program("profile '" + (folder / name).string() + "'");
        CHECK(result.code == 1);
        CHECK(result.out.empty());
        CHECK(result.error.starts_with("declivity: "));
        CHECK(std::ranges::count(result.error, '\n') == 1);
        CHECK(result.error.find(folder.path().string()) != std::string::npos);
    }
    CHECK(run_program("profile").code != 0);
    CHECK(run_program("profile --by colour x").code != 0);
}
