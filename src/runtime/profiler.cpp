#include <declivity/runtime/profiler.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "opencl/device_state.hpp"
#include "trace.hpp"
#include "access.hpp"

namespace declivity {

Profiler::Profiler(const Device& device, const ProfilerOptions& options) {
    // The library's own queues always have it; one supplied by the program may not.
    if (!state_of(device).queues.has_event_times())
        throw Unsupported(
            fmt::format("Profiler: expected a queue made with CL_QUEUE_PROFILING_ENABLE, got one on '{}' without it",
                        device.name()));
    detail::DeviceState& of = state_of(device);
    auto state = std::make_shared<detail::ProfilerState>(
        of.context, options.max_events, [&of] { return of.pool.metrics(); }, [&of] { of.queues.finish(); });
    of.queues.change_profilers([&](detail::Profilers& all) {
        if (all.of_program)
            throw ValueError(fmt::format(
                "Profiler: expected a device without a running profiler, got '{}'; stop the other profiler first",
                device.name()));
        all.of_program = state_ = std::move(state);
    });
}

Profiler::~Profiler() { stop(); }

void Profiler::stop() {
    if (after_fork()) return;
    state_->device.owner.queues.change_profilers([&](detail::Profilers& all) {
        if (all.of_program == state_) all.of_program = nullptr;
    });
    state_->stop();
}

std::vector<Profiler::Row> Profiler::rows() {
    state_->collect(true);
    std::vector<Row> rows;
    const std::scoped_lock lock(state_->mutex);
    for (const auto& [name, sum] : state_->sums)
        rows.push_back({name, sum.calls, sum.seconds, sum.longest, sum.flops, sum.bytes});
    std::ranges::sort(
        rows, [](const Row& a, const Row& b) { return std::tie(b.seconds, a.name) < std::tie(a.seconds, b.name); });
    return rows;
}

std::string Profiler::table() {
    const auto all = rows();
    double total = 0;
    for (const Row& row : all) total += row.seconds;
    std::string out = fmt::format("{:<34} {:>8} {:>12} {:>11} {:>11} {:>9} {:>8} {:>6}\n", "kernel", "calls",
                                  "total ms", "mean us", "longest us", "GFLOP/s", "GB/s", "%");
    const auto rate = [](double amount, double seconds) {
        return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount * 1e-9 / seconds) : "-";
    };
    for (const Row& row : all)
        out += fmt::format("{:<34} {:>8} {:>12.3f} {:>11.1f} {:>11.1f} {:>9} {:>8} {:>6.1f}\n", row.name, row.calls,
                           row.seconds * 1e3, row.seconds * 1e6 / static_cast<double>(row.calls), row.longest * 1e6,
                           rate(row.flops, row.seconds), rate(row.bytes, row.seconds),
                           total > 0 ? 100 * row.seconds / total : 0.0);
    return out;
}

void Profiler::write_trace(const std::filesystem::path& path, const TraceOptions& options) {
    const FunctionScope function("Profiler::write_trace");
    state_->collect(true);
    const detail::TraceDevice device{state_.get(),
                                     options.ceilings ? measure_ceilings(state_->device.handle()) : Ceilings{}};
    detail::write_trace(path, std::array{device});
}

}  // namespace declivity
