#include "process_profile.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include <declivity/runtime/profiler.hpp>
#include <fmt/format.h>

#include "environment.hpp"
#include "opencl/device_state.hpp"
#include "trace.hpp"

namespace declivity::detail {
namespace {

/// Never destroyed: static objects may still launch after main() has ended.
struct ProcessProfile {
    std::mutex mutex;
    std::filesystem::path path;
    pid_t process = getpid();
    std::vector<std::unique_ptr<ProfilerState>> devices;  // never shrinks, since devices store pointers
};

ProcessProfile& profile() {
    static auto* process_profile = new ProcessProfile;
    return *process_profile;
}

void complain(const std::exception& error) noexcept {
    std::fprintf(stderr, "declivity: DECLIVITY_PROFILE: %s\n", error.what());
}

/// Runs at the end of the process; the devices may still be working.
void write_at_exit() {
    ProcessProfile& all = profile();
    if (getpid() != all.process) return;  // a forked child has no commands of its own
    try {
        const std::scoped_lock lock(all.mutex);
        std::vector<TraceDevice> devices;
        for (const auto& item : all.devices) {
            item->device.owner.queues.change_profilers([](Profilers& of) { of.of_process = nullptr; });
            try {
                item->collect(true);
            } catch (const std::exception& error) {  // a lost device: what was read before is still written
                complain(error);
            }
            item->stop();
            devices.push_back({item.get(), {}});
        }
        write_trace(all.path, devices);
    } catch (const std::exception& error) {
        complain(error);
    }
}

}  // namespace

void profile_process(DeviceState& device) noexcept {
    const std::string& path = environment().profile;
    if (path.empty()) return;
    static std::mutex first;
    static bool asked = false, works = false;
    try {
        ProcessProfile& all = profile();
        {
            const std::scoped_lock lock(first);
            if (!asked) {
                asked = true;
                all.path = std::filesystem::absolute(path);  // the program may change its working directory
                check_trace_place(all.path);                 // fails now rather than after hours
                // Registered after the driver's hooks, which are registered when the context is created, so it runs
                // before them.
                works = std::atexit(write_at_exit) == 0;
            }
            if (!works) return;
        }
        // A queue supplied by the program may not support profiling.
        if (!device.queues.has_event_times()) return;
        auto state = std::make_unique<ProfilerState>(
            device.context, ProfilerOptions{}.max_events, [&device] { return device.pool.metrics(); },
            [&device] { device.queues.finish(); });
        const std::scoped_lock lock(all.mutex);
        device.queues.change_profilers([&](Profilers& of) { of.of_process = state.get(); });
        all.devices.push_back(std::move(state));
    } catch (const std::exception& error) {
        complain(error);
    }
}

}  // namespace declivity::detail
