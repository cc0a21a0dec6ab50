#include "profile.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/runtime/ceilings.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <runtime/environment.hpp>
#include <runtime/trace_reader.hpp>

namespace declivity::tools {
namespace {

using detail::TracedDevice;
using detail::TraceKey;
using detail::TraceSum;

struct Options {
    std::string file;
    TraceKey grouping = TraceKey::kernel;
    bool no_ceiling = false;
};

/// Peak rates of a traced device: from the trace, or measured here if the same device is present.
std::optional<Ceilings> ceilings_of(const TracedDevice& traced) {
    if (traced.ceilings.bytes > 0) return traced.ceilings;
    std::optional<Device> traced_device;
    for (const Device& device : Device::all()) {
        const DeviceInfo& info = device.info();
        const bool equal = info.name == traced.name && info.platform == traced.platform && info.driver == traced.driver;
        if (equal && (!traced_device || info.id == traced.id)) traced_device = device;
    }
    return traced_device ? std::optional(measure_ceilings(*traced_device)) : std::nullopt;
}

std::string rate(double amount, double seconds) {
    return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount * 1e-9 / seconds) : "-";
}

/// Percentage of the compute or memory peak, whichever is larger.
std::string percent(const TraceSum& sum, const std::optional<Ceilings>& ceilings) {
    if (!ceilings || sum.seconds <= 0) return "-";
    const auto at_least = [](double amount, double ceiling) { return ceiling > 0 ? amount / ceiling : 0; };
    const double compute = at_least(sum.flops_f32, ceilings->flops_f32) + at_least(sum.flops_f64, ceilings->flops_f64),
                 memory = at_least(sum.bytes, ceilings->bytes);
    if (compute <= 0 && memory <= 0) return "-";
    return fmt::format("{:.1f} {}", 100 * std::max(compute, memory) / sum.seconds,
                       compute > memory ? "compute" : "memory");
}

/// The beginning of a text, at most `max_width` ASCII characters wide.
std::string shorten(const std::string& text, std::size_t max_width) {
    return text.size() <= max_width ? text : text.substr(0, max_width - 3) + "...";
}

void print(const TracedDevice& device, TraceKey grouping, bool with_ceilings) {
    constexpr std::size_t kWidth = 44;
    double busy = 0;
    std::int64_t commands = 0;
    std::vector<std::pair<std::string, TraceSum>> rows(device.groups.begin(), device.groups.end());
    for (const auto& [name, sum] : rows) busy += sum.seconds, commands += sum.calls;
    std::ranges::stable_sort(rows, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    const double span = device.last - device.first;
    fmt::print("{} ({}): {} commands, {:.3f} ms of {:.3f} ms between the first and the last ({:.0f} %)\n",
               device.name.empty() ? "a device" : device.name, device.id.empty() ? "?" : device.id, commands,
               busy * 1e3, span * 1e3, span > 0 ? 100 * busy / span : 0);
    std::optional<Ceilings> ceilings;
    if (with_ceilings) {
        ceilings = ceilings_of(device);
        if (ceilings)
            fmt::print("measured peak: {:.1f} GFLOP/s f32, {:.1f} GFLOP/s f64, {:.1f} GB/s\n",
                       ceilings->flops_f32 * 1e-9, ceilings->flops_f64 * 1e-9, ceilings->bytes * 1e-9);
        else fmt::print("measured peak: unknown, this device is not present\n");
    }
    fmt::print("{:<44} {:>8} {:>11} {:>6} {:>10} {:>9} {:>8}  {}\n",
               grouping == TraceKey::kernel   ? "kernel"
               : grouping == TraceKey::module ? "module"
                                              : "function",
               "calls", "total ms", "%", "mean us", "GFLOP/s", "GB/s", "% of peak");
    for (const auto& [name, sum] : rows)
        fmt::print("{:<44} {:>8} {:>11.3f} {:>6.1f} {:>10.1f} {:>9} {:>8}  {}\n", shorten(name, kWidth), sum.calls,
                   sum.seconds * 1e3, busy > 0 ? 100 * sum.seconds / busy : 0,
                   sum.seconds * 1e6 / static_cast<double>(sum.calls), rate(sum.flops_f32 + sum.flops_f64, sum.seconds),
                   rate(sum.bytes, sum.seconds), percent(sum, ceilings));
}

int run(const Options& options) {
    unsetenv("DECLIVITY_PROFILE");  // measuring would overwrite the file being read
    detail::reload_environment();
    const detail::TraceSummary trace = detail::read_trace(options.file, options.grouping);
    if (trace.devices.empty())
        throw ValueError(
            fmt::format("profile: expected a trace with commands of a device, got none in {}", options.file));
    for (std::size_t i = 0; i < trace.devices.size(); ++i) {
        if (i > 0) fmt::print("\n");
        print(trace.devices[i], options.grouping, !options.no_ceiling);
    }
    if (trace.commands_dropped > 0)
        fmt::print("\n{} later commands are not in the trace, and not counted here\n", trace.commands_dropped);
    return 0;
}

}  // namespace

std::function<int()> add_profile(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    CLI::App* profile = app.add_subcommand(
        "profile",
        "shows where the time went, from a trace written by DECLIVITY_PROFILE=FILE or Profiler::write_trace");
    profile->add_option("trace", options->file, "trace file")->required();
    const std::vector<std::pair<std::string, TraceKey>> groups{
        {"kernel", TraceKey::kernel}, {"module", TraceKey::module}, {"function", TraceKey::function}};
    profile->add_option("--by", options->grouping, "group by kernel, module or function")
        ->transform(CLI::CheckedTransformer(groups));
    profile->add_flag("--no-ceiling", options->no_ceiling, "do not measure peak rates on this machine");
    return [options] { return run(*options); };
}

}  // namespace declivity::tools
