// no-oclgrind: nothing runs on a device
//
// Reading traces: sums by group, and invalid files.
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/temp_folder.hpp>

#include "runtime/trace_reader.hpp"

using namespace declivity;
using namespace declivity::test;
using detail::read_trace;
using detail::TraceKey;

namespace {

const std::string kTrace = R"({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"host"}},
{"ph":"X","cat":"module","name":"Net","pid":1,"tid":1,"ts":0.5,"dur":90.125},
{"ph":"X","cat":"kernel","name":"conv","pid":2,"tid":1,"ts":10.000,"dur":4.000,
"args":{"enqueued":5,"scope":"Net/0","operator":"conv2d","flops":8000,"bytes":400}},
{"ph":"X","cat":"kernel","name":"conv","pid":2,"tid":1,"ts":20.000,"dur":6.000,
"args":{"enqueued":5,"scope":"Net/1","operator":"conv2d","flops":2000,"bytes":600,"f64":true}},
{"ph":"X","cat":"kernel","name":"pack","pid":2,"tid":1,"ts":30.000,"dur":1.000,
"args":{"enqueued":5,"scope":"Net/1","operator":"conv2d"}},
{"ph":"X","cat":"copy","name":"copy to host","pid":2,"tid":1,"ts":40.000,"dur":2.000,
"args":{"enqueued":5,"scope":"","operator":"","bytes":64}},
{"ph":"C","name":"memory","pid":2,"ts":1.0,"args":{"in use":5,"cached":7}},
{"ph":"X","cat":"kernel","name":"conv","pid":3,"tid":1,"ts":1.000,"dur":1.000}
],"otherData":{"declivity":"0.1.0","devices":[{"pid":2,"id":"0:0","name":"a","platform":"p","driver":"d",
"ceilings":{"flops_f32":1e12,"flops_f64":5e11,"bytes":1e10}},
{"pid":3,"id":"0:1","name":"b","platform":"p","driver":"d"}],
"left_out":{"commands":12,"spans":0,"memory":0}}}
)";

detail::TraceSummary read_text(const std::string& text, TraceKey grouping = TraceKey::kernel) {
    const TempFolder folder;
    put_file(folder / "t.json", bytes_of(text));
    return read_trace((folder / "t.json").string(), grouping);
}

std::string fault_of(const std::string& text) {
    try {
        read_text(text);
    } catch (const FormatError& error) {
        return error.what();
    }
    return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("trace reader: sums by kernel, module and function, for each device") {
    const auto by_kernel = read_text(kTrace);
    CHECK(by_kernel.version == "0.1.0");
    CHECK(by_kernel.commands_dropped == 12);
    REQUIRE(by_kernel.devices.size() == 2);
    const auto& device = by_kernel.devices[0];
    CHECK(device.id == "0:0");
    CHECK(device.name == "a");
    CHECK(device.ceilings.flops_f64 == 5e11);
    CHECK(by_kernel.devices[1].name == "b");
    CHECK(by_kernel.devices[1].ceilings.bytes == 0);
    CHECK(device.first == doctest::Approx(10e-6));
    CHECK(device.last == doctest::Approx(42e-6));
    REQUIRE(device.groups.size() == 3);
    const auto& conv = device.groups.at("conv");
    CHECK(conv.calls == 2);
    CHECK(conv.seconds == doctest::Approx(10e-6));
    CHECK(conv.flops_f32 == 8000);
    CHECK(conv.flops_f64 == 2000);
    CHECK(conv.bytes == 1000);
    CHECK(device.groups.at("copy to host").bytes == 64);
    const auto by_module = read_text(kTrace, TraceKey::module).devices[0].groups;
    REQUIRE(by_module.size() == 3);
    CHECK(by_module.at("Net/1").calls == 2);
    CHECK(by_module.at("(no module)").calls == 1);
    const auto by_function = read_text(kTrace, TraceKey::function).devices[0].groups;
    REQUIRE(by_function.size() == 2);
    CHECK(by_function.at("conv2d").calls == 3);
}

TEST_CASE("trace reader: errors have an offset") {
    CHECK_THROWS_AS(read_trace("/missing/trace.json", TraceKey::kernel), IoError);
    const std::vector<std::pair<std::string, std::string>> wrong{
        {"", "in JSON"},
        {"[]", "traceEvents"},
        {"{}", "traceEvents"},
        {"7", "traceEvents"},
        {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\"}]}", "\"ts\""},
        {replaced(kTrace, "\"ts\":10.000", "\"ts\":\"soon\""), "got \"soon\""},
        {replaced(kTrace, "\"ts\":10.000", "\"ts\":-1"), "at least 0"},
        {replaced(kTrace, "\"dur\":4.000", "\"dur\":null"), "\"dur\""},
        {replaced(kTrace, "\"dur\":4.000", "\"dur\":1e300"), "microseconds"},
        {replaced(kTrace, "\"dur\":4.000", "\"dur\":1e999"), "out of range"},
        {replaced(kTrace, "\"flops\":8000", "\"flops\":[]"), "\"flops\""},
        {replaced(kTrace, "\"name\":\"conv\"", "\"name\":{}"), "\"name\""},
        {replaced(kTrace, "\"name\":\"conv\",\"pid\":2", "\"name\":\"conv\",\"pid\":\"2\""), "\"pid\""},
        {replaced(kTrace, "\"pid\":3,\"tid\":1,\"ts\":1.000,\"dur\":1.000",
                  "\"pid\":3,\"tid\":1,\"ts\":1.000,\"dur\":1.000,\"args\":5"),
         "\"args\""},
        {replaced(kTrace, "\"otherData\":{", "\"otherData\":7,\"x\":{"), "\"otherData\""},
        {replaced(kTrace, "\"bytes\":1e10", "\"bytes\":\"many\""), "\"bytes\""},
        {"{\"traceEvents\":[{\"ph\":5}]}", "\"ph\""},
    };
    for (const auto& [text, word] : wrong) {
        const std::string fault = fault_of(text);
        CAPTURE(text);
        CAPTURE(fault);
        CHECK(fault.find(word) != std::string::npos);
        CHECK(fault.find("t.json: at byte ") != std::string::npos);
    }
    // The stack must not overflow at any depth of nesting.
    CHECK(fault_of(std::string(1 << 20, '[')) != "");
    for (const char* key : {"traceEvents", "otherData", "x"})
        CHECK(fault_of("{\"" + std::string(key) + "\":" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}")
                  .find("nested deeper than 64 levels") != std::string::npos);
    CHECK(fault_of("{\"traceEvents\":" + std::string(63, '[') + std::string(63, ']') + "}") == "");
}

TEST_CASE("trace reader: memory per event is limited, and many devices take no longer than their events") {
    std::string list = "[0";
    for (int i = 0; i < 70'000; ++i) list += ",0";
    list += "]";
    CHECK(fault_of("{\"traceEvents\":[{\"x\":" + list + "}]}").find("at most 65536 values in one event") !=
          std::string::npos);
    CHECK(fault_of("{\"x\":" + list + ",\"traceEvents\":[" + list + "]}").empty());  // not stored at all
    std::string text = "{\"traceEvents\":[";
    constexpr int kDevices = 50'000;
    for (int pid = 0; pid < kDevices; ++pid)
        text += R"({"ph":"X","cat":"copy","name":"c","ts":1,"dur":1,"pid":)" + std::to_string(pid) + "},";
    text += "{}],\"otherData\":{\"devices\":[";
    for (int pid = 0; pid < kDevices; ++pid)
        text += "{\"pid\":" + std::to_string(pid) + ",\"name\":\"" + std::to_string(pid) + "\"},";
    text += "{}]}}";
    const auto summary = read_text(text);
    REQUIRE(summary.devices.size() == kDevices);
    CHECK(summary.devices[0].name.empty());  // described again by an object without a number
    CHECK(summary.devices[kDevices - 1].name == std::to_string(kDevices - 1));
}

TEST_CASE("trace reader: damaged files are refused or read partially") {
    const TempFolder folder;
    const auto read = [](const std::filesystem::path& path) {
        for (const auto& device : read_trace(path.string(), TraceKey::function).devices)
            for (const auto& [name, sum] : device.groups) {
                CHECK(sum.calls > 0);
                CHECK(sum.seconds >= 0);
            }
    };
    const auto truncated = truncate_everywhere(bytes_of(kTrace), folder / "cut.json", read);
    CHECK(truncated.accepted <= 1);  // all except the final newline
    const auto damaged = damage_at_random(bytes_of(kTrace), folder / "hurt.json", 3000, read);
    CHECK(damaged.refused > 0);
    CHECK(damaged.accepted > 0);
}
