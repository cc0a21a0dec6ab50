// Layer 1, private. The one object a device has in this process. Never destroyed, so that tensors in static storage
// may outlive main().
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/device.hpp>
#include <declivity/runtime/event.hpp>

#include "derived_cache.hpp"
#include "launch_lock.hpp"
#include "memory_pool.hpp"
#include "opencl.hpp"
#include "per_device.hpp"
#include "profiler_state.hpp"
#include "program_cache.hpp"
#include "staging.hpp"

namespace declivity::detail {

class CommandListState;

struct EventState {
    cl::Event event;
    std::string device;

    EventState(cl::Event of, std::string on) : event(std::move(of)), device(std::move(on)) {}
    EventState(const EventState&) = delete;
    EventState& operator=(const EventState&) = delete;
    ~EventState() { let_go(event); }
};

/// A read by the copy queue. Whoever writes the memory before it is done waits for it, on the device: it is a reader
/// of the buffer.
class ReadUnderWay final : public PendingLaunch {
  public:
    explicit ReadUnderWay(DeviceState& device) : device_(device) {}
    ~ReadUnderWay() override { let_go(done_); }
    /// Behind all that the compute queue has to do. @return what it will be done by
    static cl::Event start(const Buffer& source, std::size_t offset, std::span<std::byte> destination);
    /// Lets the compute queue wait for it.
    void launch() override;
    [[nodiscard]] bool pending() const noexcept override;

  private:
    DeviceState& device_;
    mutable std::mutex mutex_;
    cl::Event done_;
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

    /// While one lives, this thread is within a command's way into a queue: drivers compile there, and the end of the
    /// process waits for it. One thread at a time for each device, though OpenCL allows more: PoCL's devices that run
    /// commands in the thread that enqueues them (`basic`) lock themselves out otherwise. Nothing else of the library
    /// but a kernel's lock is taken within.
    class Enqueuing {
      public:
        explicit Enqueuing(DeviceState& device) : device_(device) {
            device_.enqueuing_.fetch_add(1);
            device_.enqueue_mutex_.lock();
        }
        ~Enqueuing() {
            device_.enqueue_mutex_.unlock();
            device_.enqueuing_.fetch_sub(1);
        }
        Enqueuing(const Enqueuing&) = delete;
        Enqueuing& operator=(const Enqueuing&) = delete;

      private:
        DeviceState& device_;
    };

    /// Enqueues, with an event when somebody profiles. `enqueue` gets the queue and a cl::Event* that may be null. Who
    /// sets a kernel's arguments holds the kernel's lock.
    template <class Enqueue>
    void submit(const Command& command, cl::CommandQueue& queue, Enqueue&& enqueue, cl::Event* event = nullptr) {
        Enqueued done;
        Profilers seen;
        cl::Event* out = event;
        refuse_after_fork(command.name);
        {
            const Enqueuing enqueuing(*this);
            if (profiled()) {
                seen = profilers();
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
    void know(const std::shared_ptr<CommandListState>& command_list);
    void drop_command_lists() noexcept;
    /// Keeps it until it is done.
    void know(const std::shared_ptr<ReadUnderWay>& read);

    /// A command that OpenCL refused; where memory ran out, with the pool's figures.
    [[noreturn]] void throw_refused(int status, std::string_view what) const;

    cl_device_id device;
    cl::Context context;
    DeviceInfo info;
    KernelStyle style = KernelStyle::simd;
    cl::CommandQueue compute;
    cl::CommandQueue transfer;
    MemoryPool pool;
    DerivedCache derived;
    StagingPool staging;
    ProgramCache programs;

    LaunchLock launching;
    std::array<std::atomic<void*>, kMaxPerDevice> kept_above{};  // per_device()

    /// Whether somebody profiles what this thread enqueues.
    [[nodiscard]] bool profiled() const noexcept {
        return profiled_.load(std::memory_order_acquire) && !Unprofiled::current();
    }
    [[nodiscard]] Profilers profilers() const {
        const std::scoped_lock lock(profilers_mutex_);
        return profilers_;
    }
    /// Calls change(profilers) and gives what it gives.
    template <class Change>
    auto change_profilers(Change&& change) {
        const std::scoped_lock lock(profilers_mutex_);
        struct Note {
            DeviceState& device;
            ~Note() { device.profiled_.store(device.profilers_.any(), std::memory_order_release); }
        } const note{*this};
        return change(profilers_);
    }

  private:
    DeviceState* opened_before_ = nullptr;
    std::atomic<int> enqueuing_{0};  // threads that are at it, or wait for it
    std::mutex enqueue_mutex_;
    mutable std::mutex profilers_mutex_;
    Profilers profilers_;
    std::atomic<bool> profiled_{false};
    std::mutex command_lists_mutex_;
    std::vector<std::weak_ptr<CommandListState>> command_lists_;
    std::mutex reads_mutex_;
    std::vector<std::shared_ptr<ReadUnderWay>> reads_;
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
