// declivity_bench: times the operators, checks their results, and compares them with peer libraries.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <declivity/tensor/tensor.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peers.hpp"
#include "report.hpp"
#include "start.hpp"

using namespace declivity;

int main(int count, char** arguments) try {
    if (count == 2 && std::string_view(arguments[1]) == "--first-step") return bench::first_step();
    std::vector<std::string> names;
    auto suites = bench::Suite::all();
    std::ranges::sort(suites, {}, &bench::Suite::name);
    std::string about = "Suites:\n";
    for (const bench::Suite* suite : suites) {
        names.push_back(suite->name);
        about += fmt::format("  {:<18} {}\n", suite->name, suite->about);
    }
    CLI::App app("Benchmarks Declivity's operators against peer libraries; each result is checked before it is timed.");
    app.footer(about);
    std::vector<std::string> selected;
    std::string device_name, json, filter;
    bool peers = false;
    app.add_option("suite", selected, "suites to run")->required()->check(CLI::IsMember(names));
    app.add_flag("--peers", peers,
                 fmt::format("time peer libraries in the same process, interleaved (here: {})",
                             fmt::join(bench::peer_names(), ", ")));
    app.add_option("--device", device_name, "device: gpu, cpu, an id or part of a name");
    app.add_option("--json", json, "write all results to this file");
    app.add_option("--filter", filter, "only cases whose names match this regular expression");
    CLI11_PARSE(app, count, arguments);

    const Device device = device_name.empty() ? Device::best() : Device::select(device_name);
    set_default_device(device);
    fmt::print("{}\n", device.name());
    bench::Report report(device, peers, filter.empty() ? std::nullopt : std::optional<std::regex>(filter));
    for (const bench::Suite* suite : suites)
        if (std::ranges::find(selected, suite->name) != selected.end()) suite->run(report);
    if (!json.empty()) {
        std::ofstream out(json);
        out << report.json().dump(1) << '\n';
        if (!out.flush()) {
            fmt::print(stderr, "cannot write {}\n", json);
            return 1;
        }
    }
    return report.failed() ? 1 : 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "declivity_bench: {}\n", error.what());
    return 1;
}
