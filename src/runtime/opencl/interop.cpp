#include <declivity/runtime/interop.hpp>

#include <map>
#include <mutex>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "command_list_state.hpp"
#include "device_query.hpp"
#include "device_state.hpp"
#include "runtime/capture.hpp"
#include "runtime/process.hpp"
#include "runtime/process_profile.hpp"
#include "runtime/access.hpp"

namespace declivity::interop {

cl_device_id device_id(const Device& device) { return state_of(device).context.device; }
cl_context context(const Device& device) { return state_of(device).context.context(); }
cl_command_queue compute_queue(const Device& device) {
    if (Capture* const capture = Capture::current())
        capture->refuse("interop::compute_queue", "the library does not see the commands enqueued there",
                        "enqueue them through interop::enqueue");
    return state_of(device).queues.compute();
}

RawBuffer raw(const Buffer& buffer) {
    if (!buffer) throw ValueError("interop::raw: expected a buffer, got an empty handle");
    return {block_of(buffer).memory(), block_of(buffer).offset, buffer.size()};
}

void enqueue(const Device& device, std::string_view name, std::span<const Buffer> buffers, const Commands& commands) {
    detail::refuse_after_fork(name);
    std::vector<RawBuffer> places;
    for (const Buffer& buffer : buffers) places.push_back(raw(buffer));
    if (Capture* const capture = Capture::current()) detail::capture_call(*capture, device, name, buffers, commands);
    const CapturePause pause;  // what the function enqueues is not captured: the replay calls the function
    commands(places);
}

Device wrap(cl_context raw_context, cl_command_queue raw_queue) {
    detail::refuse_after_fork("interop::wrap");
    detail::watch_forks();
    detail::watch_exit(detail::DeviceState::finish_all);
    static std::mutex mutex;
    static auto* wrapped = new std::map<cl_command_queue, detail::DeviceState*>;  // never destroyed, like all devices
    const std::scoped_lock lock(mutex);
    if (const auto found = wrapped->find(raw_queue); found != wrapped->end()) return device_of(*found->second);
    return detail::checked("interop::wrap", "a queue of the caller", [&] {
        cl::Context own_context(raw_context, true);
        cl::CommandQueue queue(raw_queue, true);
        // Through the C API: CLHPP retains the result, and releases it once too often on failure.
        cl_context of_queue = nullptr;
        cl_int status =
            clGetCommandQueueInfo(raw_queue, CL_QUEUE_CONTEXT, sizeof of_queue, static_cast<void*>(&of_queue), nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "context of a queue");
        if (of_queue != raw_context)
            throw ValueError("interop::wrap: expected a queue of the given context, got one of another");
        if (queue.getInfo<CL_QUEUE_PROPERTIES>() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
            throw ValueError("interop::wrap: expected an in-order queue, got one that runs out of order");
        cl_device_id device = nullptr;
        cl_platform_id platform = nullptr;
        status = clGetCommandQueueInfo(raw_queue, CL_QUEUE_DEVICE, sizeof device, static_cast<void*>(&device), nullptr);
        if (status == CL_SUCCESS)
            status =
                clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, static_cast<void*>(&platform), nullptr);
        if (status == CL_SUCCESS) status = clRetainDevice(device);  // never released, like the state
        if (status != CL_SUCCESS) throw cl::Error(status, "device of a queue");
        auto* state = new detail::DeviceState(device, std::move(own_context), std::move(queue),
                                              detail::describe(platform, device, "wrapped"));
        detail::profile_process(*state);
        wrapped->emplace(raw_queue, state);
        return device_of(*state);
    });
}

Buffer wrap(const Device& device, cl_mem memory, std::size_t offset, std::size_t bytes) {
    if (offset % 16 != 0)
        throw ValueError(
            fmt::format("interop::wrap: expected an offset that is a multiple of 16 bytes, got {}", offset));
    return detail::checked("interop::wrap", device.name(), [&] {
        cl::Buffer own(memory, true);
        cl_context of_memory = nullptr;
        const cl_int status =
            clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof of_memory, static_cast<void*>(&of_memory), nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "context of memory");
        if (of_memory != state_of(device).context.context())
            throw DeviceError(fmt::format("interop::wrap: expected memory of the context of '{}', got that of another",
                                          device.name()));
        const std::size_t size = own.getInfo<CL_MEM_SIZE>();
        if (offset > size || bytes > size - offset)
            throw ShapeError(
                fmt::format("interop::wrap: expected a range inside the memory of {} bytes, got {} bytes at byte {}",
                            size, bytes, offset));
        return buffer_of(std::make_shared<detail::Block>(state_of(device), nullptr, own, offset, bytes));
    });
}

bool profiled(const Device& device) { return state_of(device).queues.profiled(); }

void profile(const Device& device, std::string_view name, cl_event event) {
    if (event == nullptr) throw ValueError("interop::profile: expected an event, got a null pointer");
    if (!state_of(device).queues.profiled()) return;
    const detail::Profilers seen = state_of(device).queues.profilers();
    const Range none{.global = {0, 0, 0}};
    cl::Event shared = detail::checked("interop::profile", device.name(), [&] { return cl::Event(event, true); });
    seen.add({.name = name, .range = &none}, {.bracketed = false, .event = std::move(shared)});
}

}  // namespace declivity::interop
