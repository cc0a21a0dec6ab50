// The `declivity` tool: with the available devices, without any, and with one that does not exist.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>
#include <declivity/version.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <tests/support/program.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) out.push_back(line);
    return out;
}

}  // namespace

TEST_CASE("declivity: version and help") {
    if (!program_built()) return;
    const ProgramRun version = run_program("--version");
    CHECK(version.code == 0);
    CHECK(version.out == "declivity " + std::string(kVersion) + "\n");
    const ProgramRun help = run_program("--help");
    CHECK(help.code == 0);
    CHECK(help.out.find("devices") != std::string::npos);
    CHECK(run_program("devices --help").out.find("--json") != std::string::npos);
    for (const std::string wrong : {"", "frobnicate", "devices --frobnicate", "devices more"}) {
        CAPTURE(wrong);
        const ProgramRun result = run_program(wrong);
        CHECK(result.code != 0);
        CHECK(result.out.empty());
        CHECK_FALSE(result.error.empty());
    }
}

TEST_CASE("declivity devices: a line for each, and a star at the default device") {
    if (!program_built()) return;
    const auto all = Device::all();
    const Device best = Device::best();
    const ProgramRun table = run_program("devices");
    CHECK(table.code == 0);
    CHECK(table.error.empty());
    const auto rows = lines(table.out);
    REQUIRE(rows.size() == all.size() + 2);
    for (const std::string word : {"id", "name", "platform", "driver", "type", "units", "memory", "fp64", "fp16",
                                   "subgroups", "command buffers"})
        CHECK(rows[0].find(word) != std::string::npos);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const DeviceInfo& info = all[i].info();
        const std::string& row = rows[i + 1];
        CAPTURE(row);
        CHECK(row[0] == (all[i] == best ? '*' : ' '));
        for (const std::string& cell :
             {info.id, info.name, info.platform, info.driver, std::to_string(info.compute_units)})
            CHECK(row.find(cell) != std::string::npos);
        CHECK(row.find(info.name) == rows[0].find("name"));  // aligned with its title
        const std::size_t fp64 = rows[0].find("fp64");
        CHECK(row.substr(fp64, info.fp64 ? 3 : 1) == (info.fp64 ? "yes" : "-"));
    }
    CHECK(rows.back()[0] == '*');
}

TEST_CASE("declivity devices: one star among several") {
    if (!program_built()) return;
    // PoCL creates as many devices as requested.
    const std::string two_devices = "-u DECLIVITY_DEVICE POCL_DEVICES='basic pthread' ";
    if (nlohmann::json::parse(run_program("devices --json", two_devices).out).size() != 2)
        return skip("PoCL is not the only driver here");
    const auto stars = [](const ProgramRun& table) {
        std::string out;
        for (const std::string& line : lines(table.out)) out += line[0];
        return out;
    };
    CHECK(stars(run_program("devices", two_devices)) == " * *");  // title, two devices, legend of the star
    CHECK(stars(run_program("devices", two_devices + "DECLIVITY_DEVICE=0:1")) == "  **");
}

TEST_CASE("declivity devices --json: the fields of info()") {
    if (!program_built()) return;
    const auto all = Device::all();
    const ProgramRun devices_run = run_program("devices --json");
    CHECK(devices_run.code == 0);
    CHECK(devices_run.error.empty());
    const auto json = nlohmann::json::parse(devices_run.out);
    REQUIRE(json.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const DeviceInfo& info = all[i].info();
        CHECK(json[i]["id"] == info.id);
        CHECK(json[i]["name"] == info.name);
        CHECK(json[i]["vendor"] == info.vendor);
        CHECK(json[i]["platform"] == info.platform);
        CHECK(json[i]["version"] == info.version);
        CHECK(json[i]["driver"] == info.driver);
        CHECK(json[i]["compute_units"] == info.compute_units);
        CHECK(json[i]["memory"] == info.global_memory);
        CHECK(json[i]["max_allocation"] == info.max_allocation);
        CHECK(json[i]["local_memory"] == info.local_memory);
        CHECK(json[i]["max_work_group"] == info.max_work_group);
        CHECK(json[i]["fp64"] == info.fp64);
        CHECK(json[i]["fp16"] == info.fp16);
        CHECK(json[i]["subgroups"] == info.subgroups);
        CHECK(json[i]["int64_atomics"] == info.int64_atomics);
        CHECK(json[i]["command_buffers"] == info.command_buffers);
        CHECK(json[i]["extensions"] == info.extensions);
        CHECK(json[i]["best"] == (all[i] == Device::best()));
        if (info.type == DeviceType::cpu) CHECK(json[i]["type"] == "cpu");
        if (info.type == DeviceType::gpu) CHECK(json[i]["type"] == "gpu");
    }
}

TEST_CASE("declivity devices: without a driver it prints what is wrong and what to do") {
    if (!program_built()) return;
    const TempFolder empty;
    const ProgramRun none = run_program("devices", without_devices(empty));
    CHECK(none.code == 1);
    CHECK(none.out.empty());
    CHECK(lines(none.error).size() == 1);
    CHECK(none.error.find("declivity: no OpenCL device found") == 0);
    CHECK(none.error.find("pocl-opencl-icd") != std::string::npos);
    const ProgramRun json = run_program("devices --json", without_devices(empty));
    CHECK(json.code == 1);
    CHECK(nlohmann::json::parse(json.out) == nlohmann::json::array());
    CHECK(json.error == none.error);
    CHECK(run_program("--version", without_devices(empty)).code == 0);
}

TEST_CASE("declivity devices: a DECLIVITY_DEVICE without a match is an error below the list") {
    if (!program_built()) return;
    const ProgramRun wrong = run_program("devices", "DECLIVITY_DEVICE=frobnicator");
    CHECK(wrong.code == 1);
    CHECK(lines(wrong.out).size() == Device::all().size() + 1);
    CHECK(wrong.out.find('*') == std::string::npos);
    CHECK(wrong.error.find("DECLIVITY_DEVICE") != std::string::npos);
    CHECK(wrong.error.find("frobnicator") != std::string::npos);
    const std::string last = Device::all().back().info().id;
    const ProgramRun named = run_program("devices --json", "DECLIVITY_DEVICE=" + last);
    CHECK(named.code == 0);
    CHECK(nlohmann::json::parse(named.out).back()["best"] == true);
}
