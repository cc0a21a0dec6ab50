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
#include "profiler_state.hpp"
#include "program_cache.hpp"
#include "staging.hpp"

namespace declivity::detail {

class RecordingState;

struct EventState {
    cl::Event event;
    std::string device;

    EventState(cl::Event of, std::string on) : event(std::move(of)), device(std::move(on)) {}
    EventState(const EventState&) = delete;
    EventState& operator=(const EventState&) = delete;
    ~EventState() { let_go(event); }
};

/// Who profiles a device.
struct Profilers {
    std::shared_ptr<ProfilerState> of_program;  // a Profiler
    ProfilerState* of_process = nullptr;        // DECLIVITY_PROFILE; never destroyed

    [[nodiscard]] bool any() const noexcept { return of_program || of_process != nullptr; }
    void add(const Command& command, Enqueued&& enqueued) const;
};

/// Waits for everything in a queue: clFinish, which with some drivers does not wait for what was flushed before
/// (DriverFault "finish_after_flush"), and for a marker. @return the first status that is no success
cl_int finish_queue(const cl::CommandQueue& queue) noexcept;

class DeviceState {
  public:
    DeviceState(cl_device_id handle, cl::Context with, cl::CommandQueue queue, DeviceInfo described);
    DeviceState(const DeviceState&) = delete;
    DeviceState& operator=(const DeviceState&) = delete;

    /// Waits for the queues of all devices that were opened, as far as these let: for the end of the process.
    /// @param certain whether this is no thread of a driver's; otherwise waits some seconds at most
    static void finish_all(bool certain) noexcept;

    /// An event behind everything in the compute queue.
    cl::Event compute_marker();
    void finish();
    /// One queue of the two. @throws DeviceError naming `what`
    void finish(const cl::CommandQueue& queue, std::string_view what) const;

    /// Enqueues under the device's lock, with an event when somebody profiles. `enqueue` gets the queue and a
    /// cl::Event* that may be null.
    template <class Enqueue>
    void submit(const Command& command, cl::CommandQueue& queue, Enqueue&& enqueue, cl::Event* event = nullptr) {
        Enqueued done;
        Profilers seen;
        cl::Event* out = event;
        refuse_after_fork(command.name);
        {
            const std::scoped_lock lock(submit_mutex);
            if (profilers.any() && !Unprofiled::current()) {
                seen = profilers;
                if (out == nullptr) out = &done.event;
                done.before = now_ns();
            }
            try {
                enqueue(queue, out);
            } catch (const cl::Error& error) {
                throw_refused(error.err(), command.name);
            }
        }
        if (!seen.any()) return;
        try {
            done.after = now_ns();
            done.transfer = &queue == &transfer;
            if (out != &done.event) done.event = shared(*out, "profile", info.name);
            seen.add(command, std::move(done));
        } catch (...) {
            wait_for(queue);  // who is told of an error takes nothing to be under way
            throw;
        }
    }

    /// Waits as far as the device lets: before memory is given up that a command may still use.
    static void wait_for(const cl::CommandQueue& queue) noexcept;

    /// Recordings give their memory up when none is left.
    void know(const std::shared_ptr<RecordingState>& recording);
    void drop_recordings() noexcept;

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
    Profilers profilers;

  private:
    DeviceState* opened_before_ = nullptr;
    std::mutex recordings_mutex_;
    std::vector<std::weak_ptr<RecordingState>> recordings_;
};

/// Once in a process waits for the first kernel that it launches, since drivers make static objects with their first
/// compilation, and registers what is to end before these (watch_exit).
void watch_exit_behind_first_launch(const cl::CommandQueue& queue) noexcept;

DeviceInfo describe(cl_platform_id platform, cl_device_id device, std::string id);

/// An in-order queue.
/// @throws cl::Error
cl::CommandQueue make_queue(const cl::Context& context, cl_device_id device, const DeviceInfo& info,
                            cl_command_queue_properties properties);

}  // namespace declivity::detail
