// Floor 1, private. The one object a device has in this process. Never destroyed, so that tensors in static storage
// may outlive main().
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/device.hpp>
#include <declivity/runtime/event.hpp>

#include "memory_pool.hpp"
#include "opencl.hpp"
#include "program_cache.hpp"
#include "staging.hpp"

namespace declivity::detail {

struct EventState {
    cl::Event event;
    std::string device;

    EventState(cl::Event of, std::string on) : event(std::move(of)), device(std::move(on)) {}
    EventState(const EventState&) = delete;
    EventState& operator=(const EventState&) = delete;
    ~EventState() { let_go(event); }
};

/// Commands of a running Profiler. Held by it and, while it runs, by the device.
struct ProfilerState {
    struct Entry {
        std::string name;
        cl::Event event;
    };
    ~ProfilerState() {
        for (Entry& entry : pending) let_go(entry.event);
    }
    std::mutex mutex;
    std::vector<Entry> pending;
    struct Sum {
        std::int64_t calls = 0;
        double seconds = 0, longest = 0;
    };
    std::unordered_map<std::string, Sum> sums;
    DeviceState* device = nullptr;

    void add(std::string name, cl::Event event);
    /// Adds up what has run; with `all`, waits for the rest.
    void collect(bool all);

  private:
    /// False when it has not run yet.
    bool add_up(const Entry& entry);
};

class DeviceState {
  public:
    DeviceState(cl_device_id handle, cl::Context with, cl::CommandQueue queue, DeviceInfo described);
    DeviceState(const DeviceState&) = delete;
    DeviceState& operator=(const DeviceState&) = delete;

    /// An event behind everything in the compute queue.
    cl::Event compute_marker();
    void finish();

    /// Enqueues under the device's lock, with an event when somebody profiles. `enqueue` gets the queue and a
    /// cl::Event* that may be null.
    template <class Enqueue>
    void submit(std::string_view what, cl::CommandQueue& queue, Enqueue&& enqueue, cl::Event* event = nullptr) {
        std::shared_ptr<ProfilerState> profiler;
        cl::Event own;
        cl::Event* out = event;
        refuse_after_fork(what);
        {
            const std::scoped_lock lock(submit_mutex);
            profiler = active_profiler;
            if (profiler && out == nullptr) out = &own;
            try {
                enqueue(queue, out);
            } catch (const cl::Error& error) {
                throw_refused(error.err(), what);
            }
        }
        if (!profiler) return;
        try {
            profiler->add(std::string(what), out == &own ? std::move(own) : shared(*out, "profile", info.name));
        } catch (...) {
            wait_for(queue);  // who is told of an error takes nothing to be under way
            throw;
        }
    }

    /// Waits as far as the device lets: before memory is given up that a command may still use.
    static void wait_for(const cl::CommandQueue& queue) noexcept;

    /// A command that OpenCL refused; where memory ran out, with the pool's figures.
    [[noreturn]] void throw_refused(int status, std::string_view what) const;

    cl_device_id device;
    cl::Context context;
    DeviceInfo info;
    Family family = Family::cpu_like;
    cl::CommandQueue compute;
    cl::CommandQueue transfer;
    MemoryPool pool;
    StagingPool staging;
    ProgramCache programs;

    std::mutex submit_mutex;  // kernel arguments and enqueueing: a cl_kernel may be set by one thread at a time
    std::shared_ptr<ProfilerState> active_profiler;
};

DeviceInfo describe(cl_platform_id platform, cl_device_id device, std::string id);

/// An in-order queue.
/// @throws cl::Error
cl::CommandQueue make_queue(const cl::Context& context, cl_device_id device, const DeviceInfo& info, cl_command_queue_properties properties);

}  // namespace declivity::detail
