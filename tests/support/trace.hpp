// Reads profiler traces as JSON.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <declivity/runtime/profiler.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.hpp"

namespace declivity::test {

using Json = nlohmann::json;

/// @throws if it is not valid JSON
inline Json read_json(const std::filesystem::path& path) {
    std::ifstream in(path);
    return Json::parse(in);
}

inline Json trace_of(Profiler& profiler, const TraceOptions& options = {}) {
    const TempFolder folder;
    profiler.write_trace(folder / "trace.json", options);
    return read_json(folder / "trace.json");
}

/// The events of a phase, and of a category if given, in file order.
inline std::vector<Json> events(const Json& trace, const std::string& phase, const std::string& category = "") {
    std::vector<Json> out;
    for (const Json& event : trace.at("traceEvents"))
        if (event.at("ph") == phase && (category.empty() || event.value("cat", "") == category)) out.push_back(event);
    return out;
}

inline std::vector<Json> commands(const Json& trace) {
    std::vector<Json> out;
    for (const Json& event : events(trace, "X"))
        if (event.at("cat") == "kernel" || event.at("cat") == "copy") out.push_back(event);
    return out;
}

/// Returns an empty string if the events of each track are nested or disjoint, with outer ones first; otherwise
/// describes the violation.
inline std::string nesting_fault(const std::vector<Json>& spans) {
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> open;
    constexpr double rounding = 1e-4;  // rounding of doubles; times are multiples of 1e-3
    for (const Json& span : spans) {
        const double begin = span.at("ts"), end = begin + span.at("dur").get<double>();
        if (span.at("dur") < 0 || begin < 0) return "before its begin: " + span.dump();
        auto& stack = open[{span.at("pid"), span.at("tid")}];
        while (!stack.empty() && stack.back().second <= begin + rounding &&
               !(stack.back().first >= begin - rounding && end <= stack.back().second))
            stack.pop_back();
        if (!stack.empty() && (begin < stack.back().first - rounding || end > stack.back().second + rounding))
            return "across another: " + span.dump();
        stack.emplace_back(begin, end);
    }
    return "";
}

}  // namespace declivity::test
