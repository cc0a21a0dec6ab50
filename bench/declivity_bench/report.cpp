#include "report.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "limits.hpp"

namespace declivity::bench {

Suite::Suite(std::string name_, std::string about_, void (*run_)(Report&))
    : name(std::move(name_)), about(std::move(about_)), run(run_) {
    all().push_back(this);
}

std::vector<const Suite*>& Suite::all() {
    static std::vector<const Suite*> suites;
    return suites;
}

const Ceilings& Report::ceilings() {
    if (!ceilings_) ceilings_ = measure_ceilings(device_);
    return *ceilings_;
}

void Report::begin(const std::string& suite) {
    ceilings();
    suite_ = suite;
    ratios_.clear();
    fmt::print("\n{}\n{:<52} {:>9} {:>6} {:>7}  {:>10} {:>10}  {:<12} ratios to peers\n", suite, "case", "GFLOP/s",
               "GB/s", "ceiling", "us per call", "us with wait", "strategy");
}

void Report::measure(const Row& row, const Contender& ours, std::vector<Contender> peers) {
    if (!peers_) peers.clear();
    const Comparison result = compare(ours, peers);
    const Ceilings& ceilings_of_device = ceilings();
    const double flops = row.flops / result.ours.seconds, bytes = row.bytes / result.ours.seconds;
    const double part = row.flops > 0 ? flops / ceilings_of_device.multiply_add_f32 : bytes / ceilings_of_device.copy;
    std::string line = fmt::format("{:<52} {:>9} {:>6} {:>6.0f}%  {:>10.1f} {:>10.1f}  {:<12}", row.name,
                                   row.flops > 0 ? fmt::format("{:.1f}", flops * 1e-9) : "-",
                                   row.bytes > 0 ? fmt::format("{:.1f}", bytes * 1e-9) : "-", 100 * part,
                                   result.ours.seconds * 1e6, result.ours.waited * 1e6, row.strategy);
    nlohmann::ordered_json entry{{"suite", suite_},
                                 {"case", row.name},
                                 {"group", row.group},
                                 {"flops_per_second", flops},
                                 {"bytes_per_second", bytes},
                                 {"part_of_ceiling", part},
                                 {"seconds", result.ours.seconds},
                                 {"seconds_waited", result.ours.waited},
                                 {"strategy", row.strategy}};
    for (std::size_t i = 0; i < peers.size(); ++i) {
        line += fmt::format("  {} {:.2f}", peers[i].name, result.ratios[i]);
        ratios_[{row.group, peers[i].name}].push_back({row.name, result.ratios[i]});
        entry["peers"][peers[i].name] = {{"ratio", result.ratios[i]},
                                         {"seconds", result.peers[i].seconds},
                                         {"seconds_waited", result.peers[i].waited}};
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
    rows_.push_back(std::move(entry));
}

void Report::fail(const std::string& name, const std::string& why) {
    failed_ = true;
    fmt::print("{:<52} WRONG RESULT: {}\n", name, why);
    rows_.push_back({{"suite", suite_}, {"case", name}, {"wrong", why}});
}

void Report::note(const std::string& name, double value, const std::string& unit) {
    fmt::print("{:<52} {:>9.4g} {}\n", name, value, unit);
    std::fflush(stdout);
    rows_.push_back({{"suite", suite_}, {"case", name}, {"value", value}, {"unit", unit}});
}

void Report::end() {
    for (const auto& [key, ratios] : ratios_) {
        std::vector<double> values;
        for (const Ratio& ratio : ratios) values.push_back(ratio.value);
        const auto worst = std::ranges::min_element(ratios, {}, &Ratio::value);
        const std::string name = key.first.empty() ? suite_ : fmt::format("{}-{}", suite_, key.first);
        fmt::print("{} vs {}: geomean {:.2f}, worst {:.2f} ({})\n", name, key.second, geometric_mean(values),
                   worst->value, worst->name);
        summaries_.push_back({{"suite", name},
                              {"peer", key.second},
                              {"geomean", geometric_mean(values)},
                              {"worst", worst->value},
                              {"worst_case", worst->name},
                              {"cases", values.size()}});
    }
    std::fflush(stdout);
}

nlohmann::ordered_json Report::json() const {
    nlohmann::ordered_json out{{"device", device_.name()}};
    if (ceilings_)
        out["ceilings"] = {{"multiply_add_f32", ceilings_->multiply_add_f32},
                           {"multiply_add_f64", ceilings_->multiply_add_f64},
                           {"copy", ceilings_->copy},
                           {"launch", ceilings_->launch},
                           {"launch_waited", ceilings_->launch_waited}};
    out["summaries"] = summaries_;
    out["rows"] = rows_;
    return out;
}

}  // namespace declivity::bench
