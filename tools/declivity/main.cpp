// The `declivity` tool: prints the version and the devices, examines devices, tunes for them, and reads profiles.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/version.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doctor.hpp"
#include "profile.hpp"
#include "tune.hpp"

using namespace declivity;

namespace {

std::string_view name_of(DeviceType type) {
    switch (type) {
        case DeviceType::cpu:
            return "cpu";
        case DeviceType::gpu:
            return "gpu";
        case DeviceType::accelerator:
            return "accelerator";
        case DeviceType::other:
            break;
    }
    return "other";
}

std::string gibibytes(std::uint64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30); }

void print_table(const std::vector<Device>& devices, const std::optional<Device>& best) {
    std::vector<std::vector<std::string>> rows{{"", "id", "name", "platform", "driver", "type", "units", "memory",
                                                "fp64", "fp16", "subgroups", "command buffers"}};
    const auto yes = [](bool has) { return std::string(has ? "yes" : "-"); };
    for (const Device& device : devices) {
        const DeviceInfo& info = device.info();
        rows.push_back({best == device ? "*" : "", info.id, info.name, info.platform, info.driver,
                        std::string(name_of(info.type)), std::to_string(info.compute_units),
                        gibibytes(info.global_memory), yes(info.fp64), yes(info.fp16), yes(info.subgroups),
                        yes(info.command_buffers)});
    }
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::print("{}\n", line);
    }
    if (best) fmt::print("* the default device\n");
}

void print_json(const std::vector<Device>& devices, const std::optional<Device>& best) {
    auto list = nlohmann::ordered_json::array();
    for (const Device& device : devices) {
        const DeviceInfo& info = device.info();
        list.push_back({{"id", info.id},
                        {"best", best == device},
                        {"name", info.name},
                        {"vendor", info.vendor},
                        {"platform", info.platform},
                        {"version", info.version},
                        {"driver", info.driver},
                        {"type", name_of(info.type)},
                        {"compute_units", info.compute_units},
                        {"memory", info.global_memory},
                        {"max_allocation", info.max_allocation},
                        {"local_memory", info.local_memory},
                        {"max_work_group", info.max_work_group},
                        {"fp64", info.fp64},
                        {"fp16", info.fp16},
                        {"subgroups", info.subgroups},
                        {"int64_atomics", info.int64_atomics},
                        {"command_buffers", info.command_buffers},
                        {"extensions", info.extensions}});
    }
    // Device names may contain invalid UTF-8.
    fmt::print("{}\n", list.dump(4, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

/// @return the exit code: 0 if there is a default device
int devices(bool json) {
    const std::vector<Device> all = Device::all();
    std::optional<Device> best;
    std::string fault;
    try {
        best = Device::best();
    } catch (const DeviceError& error) {  // there is no device, or DECLIVITY_DEVICE matches none
        fault = error.what();
    }
    if (json) print_json(all, best);
    else if (!all.empty()) print_table(all, best);
    if (best) return 0;
    std::fflush(stdout);
    fmt::print(stderr, "declivity: {}\n", fault);
    return 1;
}

}  // namespace

int main(int argc, char** argv) try {
    CLI::App app("Inspects the OpenCL devices of this machine and tunes Declivity for them.", "declivity");
    app.set_version_flag("--version", fmt::format("declivity {}", kVersion), "print the version and exit");
    app.require_subcommand(1);
    bool json = false;
    CLI::App* list = app.add_subcommand("devices", "lists the OpenCL devices");
    list->add_flag("--json", json, "print a JSON array");
    const auto tune = tools::add_tune(app);
    const auto profile = tools::add_profile(app);
    const auto doctor = tools::add_doctor(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const int code = app.exit(error);
        return code != 0 && argc > 1 && std::string_view(argv[1]) == "doctor" ? tools::kExitSkipped : code;
    }
    return *list                            ? devices(json)
           : *app.get_subcommand("profile") ? profile()
           : *app.get_subcommand("doctor")  ? doctor()
                                            : tune();
} catch (const std::exception& error) {
    fmt::print(stderr, "declivity: {}\n", error.what());
    return 1;
}
