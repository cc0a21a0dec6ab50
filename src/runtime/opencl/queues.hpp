// Layer 1, private. The two in-order queues of a device, to which all commands go, and the profilers that observe them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "device_context.hpp"
#include "opencl.hpp"
#include "profiler_state.hpp"

namespace declivity::detail {

/// Creates an in-order queue.
/// @throws cl::Error
cl::CommandQueue make_queue(const cl::Context& context, cl_device_id device, const DeviceInfo& info,
                            cl_command_queue_properties properties);
inline cl::CommandQueue make_queue(const DeviceContext& device, cl_command_queue_properties properties) {
    return make_queue(device.context, device.device, device.info, properties);
}

/// Synchronises a queue by clFinish, which with some drivers does not wait for commands flushed before (DriverFault
/// "finish_after_flush"), and by a marker. @return the first error status, or CL_SUCCESS
cl_int finish_queue(const cl::CommandQueue& queue) noexcept;

/// The active profilers of a device.
struct Profilers {
    std::shared_ptr<ProfilerState> of_program;  // a Profiler
    ProfilerState* of_process = nullptr;        // DECLIVITY_PROFILE; never destroyed

    [[nodiscard]] bool any() const noexcept { return of_program || of_process != nullptr; }
    void add(const Command& command, Enqueued&& enqueued) const;
};

class Queues {
  public:
    /// @param memory_report statistics of the memory pool, for errors about a lack of memory
    Queues(const DeviceContext& device, cl::CommandQueue compute_queue, std::function<std::string()> memory_report);
    Queues(const Queues&) = delete;
    Queues& operator=(const Queues&) = delete;

    /// An event after all commands of the compute queue.
    cl::Event compute_marker();
    /// Synchronises both.
    void finish();
    /// Synchronises one of the two. @throws DeviceError naming `what`
    void finish(const cl::CommandQueue& queue, std::string_view what) const;
    /// Synchronises as far as the device allows: to be called before memory is released that a command may still use.
    static void wait_for(const cl::CommandQueue& queue) noexcept;
    /// Returns whether the events of the compute queue have times: a queue supplied by the program may have none.
    [[nodiscard]] bool has_event_times() const;

    /// Marks this thread as enqueueing a command: drivers may compile then, and the end of the process waits for it.
    /// One thread at a time for each device, though OpenCL allows more: PoCL devices that run commands in the
    /// enqueueing thread (`basic`) deadlock otherwise. No other lock of the library but a kernel's is acquired within.
    class Enqueuing {
      public:
        explicit Enqueuing(Queues& queues) : queues_(queues) {
            queues_.enqueuing_.fetch_add(1);
            queues_.enqueue_mutex_.lock();
        }
        ~Enqueuing() {
            queues_.enqueue_mutex_.unlock();
            queues_.enqueuing_.fetch_sub(1);
        }
        Enqueuing(const Enqueuing&) = delete;
        Enqueuing& operator=(const Enqueuing&) = delete;

      private:
        Queues& queues_;
    };
    /// Returns whether a thread enqueues.
    [[nodiscard]] bool enqueuing() const noexcept { return enqueuing_.load() != 0; }

    /// Enqueues a command, with an event while a profiler runs. `enqueue` gets the queue and a cl::Event* that may be
    /// null. A caller that sets kernel arguments must hold the kernel's lock.
    template <class Enqueue>
    void submit(const Command& command, cl::CommandQueue& queue, Enqueue&& enqueue, cl::Event* event = nullptr) {
        Enqueued done;
        Profilers observers;
        cl::Event* out = event;
        refuse_after_fork(command.name);
        {
            const Enqueuing enqueuing(*this);
            if (profiled()) {
                observers = profilers();
                if (out == nullptr) out = &done.event;
                done.before = now_ns();
            }
            try {
                enqueue(queue, out);
            } catch (const cl::Error& error) {
                throw_refused(error.err(), command.name);
            }
        }
        if (!observers.any()) return;
        try {
            done.after = now_ns();
            done.transfer = &queue == &transfer;
            if (out != &done.event) done.event = shared(*out, "profile", device_.info.name);
            observers.add(command, std::move(done));
        } catch (...) {
            wait_for(queue);  // after an error the caller may free the memory
            throw;
        }
    }

    /// Throws for a command that OpenCL refused; if memory ran out, with the report about memory.
    [[noreturn]] void throw_refused(int status, std::string_view what) const;

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
        struct Update {
            Queues& queues;
            ~Update() { queues.profiled_.store(queues.profilers_.any(), std::memory_order_release); }
        } const update{*this};
        return change(profilers_);
    }

    cl::CommandQueue compute;
    cl::CommandQueue transfer;

  private:
    const DeviceContext& device_;
    std::function<std::string()> memory_report_;
    std::atomic<int> enqueuing_{0};  // threads that enqueue or are blocked on the mutex
    std::mutex enqueue_mutex_;
    mutable std::mutex profilers_mutex_;
    Profilers profilers_;
    std::atomic<bool> profiled_{false};
};

}  // namespace declivity::detail
