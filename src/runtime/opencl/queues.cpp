#include "queues.hpp"

#include <array>

#include <declivity/runtime/error.hpp>

#include "runtime/process.hpp"

namespace declivity::detail {

cl::CommandQueue make_queue(const cl::Context& context, cl_device_id device, const DeviceInfo& info,
                            cl_command_queue_properties properties) {
    cl_int status = CL_SUCCESS;
    cl_command_queue queue = nullptr;
    if (info.version.starts_with("OpenCL 1.")) {
        queue = clCreateCommandQueue(context(), device, properties, &status);
    } else {
        const std::array<cl_queue_properties, 3> list{CL_QUEUE_PROPERTIES, properties, 0};
        queue = clCreateCommandQueueWithProperties(context(), device, list.data(), &status);
    }
    if (status != CL_SUCCESS) throw cl::Error(status, "clCreateCommandQueue");
    return cl::CommandQueue(queue);
}

cl_int finish_queue(const cl::CommandQueue& queue) noexcept {
    // A marker after all commands of the in-order queue; enqueued twice, since a driver with this fault may signal a
    // marker before the commands batched with it.
    cl_int marked = CL_SUCCESS;
    for (int i = 0; i < 2 && marked == CL_SUCCESS; ++i) {
        cl_event last = nullptr;
        marked = clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &last);
        if (marked != CL_SUCCESS) break;
        marked = clWaitForEvents(1, &last);
        clReleaseEvent(last);
    }
    const cl_int finished = clFinish(queue());
    return finished != CL_SUCCESS ? finished : marked;
}

void Profilers::add(const Command& command, Enqueued&& enqueued) const {
    if (of_program && of_process != nullptr) {
        Enqueued other{.transfer = enqueued.transfer,
                       .before = enqueued.before,
                       .after = enqueued.after,
                       .bracketed = enqueued.bracketed,
                       .event = shared(enqueued.event, "profile", of_process->device.info.name)};
        of_process->add(command, std::move(other));
    } else if (of_process != nullptr) {
        return of_process->add(command, std::move(enqueued));
    }
    if (of_program) of_program->add(command, std::move(enqueued));
}

Queues::Queues(const DeviceContext& device, cl::CommandQueue compute_queue, std::function<std::string()> memory_report)
    : compute(std::move(compute_queue)), device_(device), memory_report_(std::move(memory_report)) {
    checked("make the transfer queue", device.info.name,
            [&] { transfer = make_queue(device, CL_QUEUE_PROFILING_ENABLE); });
}

cl::Event Queues::compute_marker() {
    cl::Event event;
    refuse_after_fork("marker");
    const Enqueuing enqueuing(*this);
    checked("marker", device_.info.name, [&] { compute.enqueueMarkerWithWaitList(nullptr, &event); });
    // Another queue may depend on it: an event that was never flushed does not complete.
    checked("flush", device_.info.name, [&] { compute.flush(); });
    return event;
}

void Queues::finish() {
    finish(transfer, "wait for the transfer queue");
    finish(compute, "wait for the compute queue");
    watch_exit_again();
}

void Queues::finish(const cl::CommandQueue& queue, std::string_view what) const {
    refuse_after_fork(what);
    if (const cl_int status = finish_queue(queue); status != CL_SUCCESS)
        throw_status(status, std::string(what), device_.info.name);
}

void Queues::wait_for(const cl::CommandQueue& queue) noexcept { (void)finish_queue(queue); }

bool Queues::has_event_times() const {
    const auto properties =
        checked("properties of the queue", device_.info.name, [&] { return compute.getInfo<CL_QUEUE_PROPERTIES>(); });
    return (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
}

void Queues::throw_refused(int status, std::string_view what) const {
    const bool memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES;
    throw_status(status, memory ? std::string(what) + memory_report_() : std::string(what), device_.info.name);
}

}  // namespace declivity::detail
