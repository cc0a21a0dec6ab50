// Layer 1, private. The state of a device, one object per process and device. Never destroyed, so that tensors in
// static storage may outlive main().
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

/// A read on the copy queue. It is registered as a reader of the buffer: a later writer makes the compute queue wait
/// for it.
class InFlightRead final : public PendingLaunch {
  public:
    explicit InFlightRead(DeviceState& device) : device_(device) {}
    ~InFlightRead() override { let_go(done_); }
    /// Starts a read after all commands of the compute queue. @return the event that completes it
    static cl::Event start(const Buffer& source, std::size_t offset, std::span<std::byte> destination);
    /// Makes the compute queue wait for the read.
    void launch() override;
    [[nodiscard]] bool pending() const noexcept override;

  private:
    DeviceState& device_;
    mutable std::mutex mutex_;
    cl::Event done_;
};

/// The active profilers of a device.
struct Profilers {
    std::shared_ptr<ProfilerState> of_program;  // a Profiler
    ProfilerState* of_process = nullptr;        // DECLIVITY_PROFILE; never destroyed

    [[nodiscard]] bool any() const noexcept { return of_program || of_process != nullptr; }
    void add(const Command& command, Enqueued&& enqueued) const;
};

/// Synchronises a queue by clFinish, which with some drivers does not wait for commands flushed before (DriverFault
/// "finish_after_flush"), and by a marker. @return the first error status, or CL_SUCCESS
cl_int finish_queue(const cl::CommandQueue& queue) noexcept;

class DeviceState {
  public:
    DeviceState(cl_device_id handle, cl::Context with, cl::CommandQueue queue, DeviceInfo described);
    DeviceState(const DeviceState&) = delete;
    DeviceState& operator=(const DeviceState&) = delete;

    /// Synchronises the queues of all opened devices as far as possible, at the end of the process.
    /// @param certain true if the calling thread cannot be a driver thread; otherwise the wait is limited to a few
    /// seconds
    static void finish_all(bool certain) noexcept;

    /// An event after all commands of the compute queue.
    cl::Event compute_marker();
    void finish();
    /// Synchronises one of the two queues. @throws DeviceError naming `what`
    void finish(const cl::CommandQueue& queue, std::string_view what) const;

    /// Marks this thread as enqueueing a command: drivers may compile then, and the end of the process waits for it.
    /// One thread at a time for each device, though OpenCL allows more: PoCL devices that run commands in the
    /// enqueueing thread (`basic`) deadlock otherwise. No other lock of the library but a kernel's is acquired within.
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

    /// Enqueues a command, with an event while a profiler runs. `enqueue` gets the queue and a cl::Event* that may be
    /// null. A caller that sets kernel arguments must hold the kernel's lock.
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
            wait_for(queue);  // after an error the caller may free the memory
            throw;
        }
    }

    /// Synchronises as far as the device allows: to be called before memory is released that a command may still use.
    static void wait_for(const cl::CommandQueue& queue) noexcept;

    /// Registers a command list: it releases its memory when the device runs out.
    void register_command_list(const std::shared_ptr<CommandListState>& command_list);
    void drop_command_lists() noexcept;
    /// Keeps the read alive until it has completed.
    void register_read(const std::shared_ptr<InFlightRead>& read);

    /// Throws for a command that OpenCL refused; if memory ran out, with the pool's statistics.
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
    std::array<std::atomic<void*>, kMaxPerDevice> per_device_slots{};  // per_device()

    /// Returns whether a profiler observes what this thread enqueues.
    [[nodiscard]] bool profiled() const noexcept {
        return profiled_.load(std::memory_order_acquire) && !Unprofiled::current();
    }
    [[nodiscard]] Profilers profilers() const {
        const std::scoped_lock lock(profilers_mutex_);
        return profilers_;
    }
    /// Calls change(profilers) under the lock and returns its result.
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
    std::atomic<int> enqueuing_{0};  // threads that enqueue or are blocked on the mutex
    std::mutex enqueue_mutex_;
    mutable std::mutex profilers_mutex_;
    Profilers profilers_;
    std::atomic<bool> profiled_{false};
    std::mutex command_lists_mutex_;
    std::vector<std::weak_ptr<CommandListState>> command_lists_;
    std::mutex reads_mutex_;
    std::vector<std::shared_ptr<InFlightRead>> reads_;
};

/// After the first kernel launch of the process, synchronises once, since drivers create static objects in their first
/// compilation, and registers the exit hook that must run before their destruction (watch_exit).
void watch_exit_behind_first_launch(const cl::CommandQueue& queue) noexcept;

DeviceInfo describe(cl_platform_id platform, cl_device_id device, std::string id);

/// Creates an in-order queue.
/// @throws cl::Error
cl::CommandQueue make_queue(const cl::Context& context, cl_device_id device, const DeviceInfo& info,
                            cl_command_queue_properties properties);

}  // namespace declivity::detail
