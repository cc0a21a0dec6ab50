#include "profiler_state.hpp"

#include <algorithm>
#include <utility>

#include <declivity/runtime/scope.hpp>

namespace declivity::detail {
namespace {

constexpr std::size_t kMaxPending = 4096;  // bounds the number of unread events in a long run

thread_local bool unprofiled = false;

}  // namespace

Unprofiled::Unprofiled() { unprofiled = true; }
Unprofiled::~Unprofiled() { unprofiled = false; }
bool Unprofiled::current() noexcept { return unprofiled; }

ProfilerState::ProfilerState(const DeviceContext& of, std::size_t max_events, std::function<MemoryStats()> memory_stats,
                             std::function<void()> finish)
    : device(of),
      event_limit(max_events),
      clock(of.device, of.info.version),
      memory_stats_(std::move(memory_stats)),
      finish_(std::move(finish)) {
    clock.sample();
    SpanRecorder::instance().enter(max_events);
}

ProfilerState::~ProfilerState() {
    for (Entry& entry : pending_) abandon_after_fork(entry.enqueued.event);
    if (after_fork()) return;
    stop();
    SpanRecorder::instance().leave();
}

void ProfilerState::stop() {
    const std::scoped_lock lock(mutex);
    if (std::exchange(stopped_, true)) return;
    end = now_ns();
    SpanRecorder::instance().pause();
}

std::uint32_t ProfilerState::number_of(std::string_view text) {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    names.emplace_back(text);
    const auto number = static_cast<std::uint32_t>(names.size() - 1);
    numbers_.emplace(names.back(), number);
    return number;
}

void ProfilerState::add(const Command& command, Enqueued&& enqueued) {
    const MemoryStats metrics = memory_stats_();
    const ScopePath scope = Scope::path();
    std::unique_lock lock(mutex);
    Entry entry{.name = number_of(command.name),
                .scope = number_of(scope.str()),
                .launch = command.range != nullptr,
                .global = {},
                .local = {},
                .bytes = command.bytes,
                .run = current_operator(),
                .enqueued = std::move(enqueued)};
    if (command.range != nullptr) entry.global = command.range->global, entry.local = command.range->local;
    if (entry.run) {
        Tally& tally = tallies_[entry.run.get()];
        tally.run = entry.run;
        ++tally.pending_commands;
    }
    pending_.push_back(std::move(entry));
    if (memory.empty() || memory.back().in_use != metrics.in_use || memory.back().cached != metrics.cached) {
        if (memory.size() < event_limit) memory.push_back({now_ns(), metrics.in_use, metrics.cached});
        else ++memory_dropped;
    }
    const bool many = pending_.size() > kMaxPending;
    lock.unlock();
    if (many) collect(false);
}

void ProfilerState::collect(bool all) {
    if (all) finish_();  // before the lock: other threads may continue to launch
    const std::scoped_lock lock(mutex);
    clock.sample();
    // An entry is removed once it is read: if the device fails to answer, the rest is retried later.
    std::size_t kept = 0, next = 0;
    const auto keep = [&] { std::swap(pending_[kept++], pending_[next]); };
    try {
        for (; next < pending_.size(); ++next) {
            const Entry& entry = pending_[next];
            const cl_int status = entry.enqueued.event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
            if (status > CL_COMPLETE) {
                keep();
                continue;
            }
            if (status == CL_COMPLETE) read(entry);
            if (entry.run) --tallies_.at(entry.run.get()).pending_commands;
        }
    } catch (const cl::Error& error) {
        for (; next < pending_.size(); ++next) keep();
        pending_.resize(kept);
        throw_status(error.err(), "profile", device.info.name);
    }
    pending_.resize(kept);
    std::erase_if(tallies_, [this](const auto& item) {
        const Tally& tally = item.second;
        if (!tally.run->closed.load(std::memory_order_acquire) || tally.pending_commands > 0) return false;
        credit(tally);
        return true;
    });
}

void ProfilerState::read(const Entry& entry) {
    const cl::Event& event = entry.enqueued.event;
    const auto start = event.getProfilingInfo<CL_PROFILING_COMMAND_START>();
    const auto finish = std::max(start, event.getProfilingInfo<CL_PROFILING_COMMAND_END>());
    if (entry.enqueued.bracketed)
        clock.add_queued_command(event.getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>(), entry.enqueued.before,
                                 entry.enqueued.after);
    const double seconds = static_cast<double>(finish - start) * 1e-9;
    Sum& sum = sums[names[entry.name]];
    ++sum.calls;
    sum.seconds += seconds;
    sum.longest = std::max(sum.longest, seconds);
    sum.bytes += entry.run ? 0 : entry.bytes;
    std::size_t record = kNone;
    if (commands.size() < event_limit) {
        record = commands.size();
        commands.push_back({.name = entry.name,
                            .scope = entry.scope,
                            .operator_ = number_of(entry.run ? std::string_view(entry.run->name) : ""),
                            .transfer = entry.enqueued.transfer,
                            .launch = entry.launch,
                            .f64 = false,
                            .start = start,
                            .end = finish,
                            .enqueued = entry.enqueued.bracketed ? entry.enqueued.before : 0,
                            .flops = 0,
                            .bytes = entry.run ? 0 : entry.bytes,
                            .global = entry.global,
                            .local = entry.local});
    } else {
        ++commands_dropped;
    }
    if (entry.run) tallies_.at(entry.run.get()).launches.push_back({entry.name, seconds, record});
}

/// Credits the work to the kernel that took most of the time, distributed over its calls by their durations.
void ProfilerState::credit(const Tally& tally) {
    struct Kernel {
        double seconds = 0;
        std::size_t calls = 0;
    };
    std::map<std::uint32_t, Kernel> kernels;
    for (const auto& launch : tally.launches) {
        Kernel& kernel = kernels[launch.name];
        kernel.seconds += launch.seconds;
        ++kernel.calls;
    }
    if (kernels.empty()) return;
    const auto& [main, all] =
        *std::ranges::max_element(kernels, {}, [](const auto& kernel) { return kernel.second.seconds; });
    const Work& work = tally.run->work;
    Sum& sum = sums[names[main]];
    sum.flops += work.flops;
    sum.bytes += work.bytes;
    for (const auto& launch : tally.launches) {
        if (launch.name != main || launch.record == kNone) continue;
        const double share = all.seconds > 0 ? launch.seconds / all.seconds : 1.0 / static_cast<double>(all.calls);
        CommandRecord& record = commands[launch.record];
        record.flops = work.flops * share;
        record.bytes = work.bytes * share;
        record.f64 = work.f64;
    }
}

}  // namespace declivity::detail
