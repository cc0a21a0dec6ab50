#include <declivity/train/epoch_metrics.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::train {
namespace {

auto find(const std::vector<Metrics::Entry>& entries, std::string_view name) {
    return std::ranges::find(entries, name, &Metrics::Entry::first);
}

}  // namespace

double Metrics::operator[](std::string_view name) const {
    const auto found = find(entries_, name);
    if (found != entries_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [other, value] : entries_) names.push_back(other);
    throw ValueError(fmt::format("Metrics: expected the name of a metric, one of {}, got '{}'", names, name));
}

bool Metrics::has(std::string_view name) const noexcept { return find(entries_, name) != entries_.end(); }

void Metrics::add(std::string name, double value) {
    if (has(name)) throw ValueError(fmt::format("Metrics: expected each name once, got '{}' again", name));
    entries_.emplace_back(std::move(name), value);
}

}  // namespace declivity::train
