#include <declivity/runtime/profiler.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "device_state.hpp"

namespace declivity {
namespace detail {

void ProfilerState::add(std::string name, cl::Event event) {
    std::unique_lock lock(mutex);
    pending.push_back({std::move(name), std::move(event)});
    const bool many = pending.size() > 4096;  // a long run must not keep an event for each launch it ever made
    lock.unlock();
    if (many) collect(false);
}

void ProfilerState::collect(bool all) {
    if (all) device->finish();  // before taking the lock: others may go on launching meanwhile
    const std::scoped_lock lock(mutex);
    // An entry leaves the list when it is added up: should the device refuse to tell, the rest is asked again later.
    std::size_t kept = 0, next = 0;
    const auto keep = [&] { std::swap(pending[kept++], pending[next]); };
    try {
        for (; next < pending.size(); ++next)
            if (!add_up(pending[next])) keep();
    } catch (const cl::Error& error) {
        for (; next < pending.size(); ++next) keep();
        pending.resize(kept);
        throw_status(error.err(), "profile", device->info.name);
    }
    pending.resize(kept);
}

bool ProfilerState::add_up(const Entry& entry) {
    const cl_int status = entry.event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
    if (status > CL_COMPLETE) return false;
    if (status < 0) return true;
    const auto start = entry.event.getProfilingInfo<CL_PROFILING_COMMAND_START>();
    const auto end = entry.event.getProfilingInfo<CL_PROFILING_COMMAND_END>();
    const double seconds = end > start ? static_cast<double>(end - start) * 1e-9 : 0.0;
    Sum& sum = sums[entry.name];
    ++sum.calls;
    sum.seconds += seconds;
    sum.longest = std::max(sum.longest, seconds);
    return true;
}

}  // namespace detail

Profiler::Profiler(const Device& device) : state_(std::make_shared<detail::ProfilerState>()) {
    state_->device = &device.state();
    // The library's own queues always have it; one that a program brought along may not.
    const auto properties = detail::checked("Profiler", device.name(), [&] { return device.state().compute.getInfo<CL_QUEUE_PROPERTIES>(); });
    if ((properties & CL_QUEUE_PROFILING_ENABLE) == 0)
        throw Unsupported(fmt::format("Profiler: wants a queue made with CL_QUEUE_PROFILING_ENABLE, got one on '{}' without", device.name()));
    const std::scoped_lock lock(device.state().submit_mutex);
    if (device.state().active_profiler)
        throw ValueError(fmt::format("Profiler: '{}' is being profiled already; stop that one first", device.name()));
    device.state().active_profiler = state_;
}

Profiler::~Profiler() { stop(); }

void Profiler::stop() {
    if (after_fork()) return;
    const std::scoped_lock lock(state_->device->submit_mutex);
    if (state_->device->active_profiler == state_) state_->device->active_profiler = nullptr;
}

std::vector<Profiler::Row> Profiler::rows() {
    state_->collect(true);
    std::vector<Row> rows;
    const std::scoped_lock lock(state_->mutex);
    for (const auto& [name, sum] : state_->sums) rows.push_back({name, sum.calls, sum.seconds, sum.longest});
    std::ranges::sort(rows, [](const Row& a, const Row& b) { return std::tie(b.seconds, a.name) < std::tie(a.seconds, b.name); });
    return rows;
}

std::string Profiler::table() {
    const auto all = rows();
    double total = 0;
    for (const Row& row : all) total += row.seconds;
    std::string out = fmt::format("{:<34} {:>8} {:>12} {:>11} {:>11} {:>6}\n", "kernel", "calls", "total ms", "mean us", "longest us", "%");
    for (const Row& row : all)
        out += fmt::format("{:<34} {:>8} {:>12.3f} {:>11.1f} {:>11.1f} {:>6.1f}\n", row.name, row.calls, row.seconds * 1e3,
                           row.seconds * 1e6 / static_cast<double>(row.calls), row.longest * 1e6,
                           total > 0 ? 100 * row.seconds / total : 0.0);
    return out;
}

}  // namespace declivity
