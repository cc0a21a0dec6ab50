#include "tests/support/opencl_calls.hpp"

#include <atomic>

#include <CL/cl.h>

#include "tests/support/interpose.hpp"
#include "tests/support/written_memory.hpp"

using declivity::test::real;
namespace written_memory = declivity::test::written_memory;
namespace faults = declivity::test::faults;
using faults::Handle;

namespace {

std::atomic<long> create_buffer, finish, wait_for_events, blocking_transfer;
std::atomic<std::size_t> largest_buffer{~std::size_t{0}};

cl_int with_event(cl_int status, const cl_event* event) {
    if (status == CL_SUCCESS && event != nullptr) faults::count(Handle::event, 1);
    return status;
}

}  // namespace

extern "C" {

DECLIVITY_EXPORT cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host,
                                       cl_int* status) {
    ++create_buffer;
    DECLIVITY_REFUSAL(clCreateBuffer, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
                      CL_INVALID_BUFFER_SIZE)
    if (refused != CL_SUCCESS || size > largest_buffer) {
        if (status != nullptr) *status = refused != CL_SUCCESS ? refused : CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return nullptr;
    }
    static auto* next = real<decltype(clCreateBuffer)>("clCreateBuffer");
    cl_mem made = next(context, flags, size, host, status);
    if (ours && made != nullptr) faults::count(Handle::memory, 1);
    return made;
}

DECLIVITY_EXPORT cl_int clFinish(cl_command_queue queue) {
    ++finish;
    DECLIVITY_REFUSAL(clFinish, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) return refused;
    static auto* next = real<decltype(clFinish)>("clFinish");
    return next(queue);
}

DECLIVITY_EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
    ++wait_for_events;
    DECLIVITY_REFUSAL(clWaitForEvents, CL_OUT_OF_RESOURCES, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                      CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) return refused;
    static auto* next = real<decltype(clWaitForEvents)>("clWaitForEvents");
    const cl_int status = next(count, events);
    return status == CL_SUCCESS && faults::failed_wait() ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : status;
}

DECLIVITY_EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                            size_t size, void* to, cl_uint count, const cl_event* events,
                                            cl_event* event) {
    blocking_transfer += blocking == CL_TRUE;
    DECLIVITY_REFUSAL(clEnqueueReadBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) return refused;
    static auto* next = real<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
    return with_event(next(queue, buffer, blocking, offset, size, to, count, events, event), event);
}

DECLIVITY_EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                             size_t size, const void* from, cl_uint count, const cl_event* events,
                                             cl_event* event) {
    blocking_transfer += blocking == CL_TRUE;
    DECLIVITY_REFUSAL(clEnqueueWriteBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                      CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) return refused;
    if (written_memory::active())
        return written_memory::write(queue, buffer, blocking, offset, size, from, count, events, event);
    static auto* next = real<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer");
    return with_event(next(queue, buffer, blocking, offset, size, from, count, events, event), event);
}

DECLIVITY_EXPORT void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                          size_t offset, size_t size, cl_uint count, const cl_event* events,
                                          cl_event* event, cl_int* status) {
    blocking_transfer += blocking == CL_TRUE;
    DECLIVITY_REFUSAL(clEnqueueMapBuffer, CL_MAP_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) {
        if (status != nullptr) *status = refused;
        return nullptr;
    }
    static auto* next = real<decltype(clEnqueueMapBuffer)>("clEnqueueMapBuffer");
    void* const host = next(queue, buffer, blocking, flags, offset, size, count, events, event, status);
    if (host != nullptr) with_event(CL_SUCCESS, event);
    return host;
}

DECLIVITY_EXPORT cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t unit,
                                            size_t offset, size_t size, cl_uint count, const cl_event* events,
                                            cl_event* event) {
    DECLIVITY_REFUSAL(clEnqueueFillBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) return refused;
    if (written_memory::active())
        return written_memory::fill(queue, buffer, pattern, unit, offset, size, count, events, event);
    static auto* next = real<decltype(clEnqueueFillBuffer)>("clEnqueueFillBuffer");
    return with_event(next(queue, buffer, pattern, unit, offset, size, count, events, event), event);
}

DECLIVITY_EXPORT cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                            size_t to_offset, size_t size, cl_uint count, const cl_event* events,
                                            cl_event* event) {
    DECLIVITY_REFUSAL(clEnqueueCopyBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY)
    if (refused != CL_SUCCESS) return refused;
    if (written_memory::active())
        return written_memory::copy(queue, from, to, from_offset, to_offset, size, count, events, event);
    static auto* next = real<decltype(clEnqueueCopyBuffer)>("clEnqueueCopyBuffer");
    return with_event(next(queue, from, to, from_offset, to_offset, size, count, events, event), event);
}

DECLIVITY_EXPORT cl_int clReleaseMemObject(cl_mem object) {
    const bool ours = faults::of_program(__builtin_return_address(0));
    if (ours) faults::count_call();
    cl_uint owners = 0;
    if (written_memory::active() &&
        clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof owners, &owners, nullptr) == CL_SUCCESS &&
        owners == 1)
        return CL_SUCCESS;
    static auto* next = real<decltype(clReleaseMemObject)>("clReleaseMemObject");
    const cl_int status = next(object);
    if (ours && status == CL_SUCCESS) faults::count(Handle::memory, -1);
    return status;
}

}  // extern "C"

namespace declivity::test {

RefuseBuffers::RefuseBuffers(std::size_t above) { largest_buffer = above; }
RefuseBuffers::~RefuseBuffers() { largest_buffer = ~std::size_t{0}; }

OpenClCalls opencl_calls() { return {create_buffer, finish, wait_for_events, blocking_transfer}; }

}  // namespace declivity::test
