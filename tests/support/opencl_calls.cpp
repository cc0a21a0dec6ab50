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
    DECLIVITY_INJECT_FAULT(clCreateBuffer, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
                           CL_INVALID_BUFFER_SIZE)
    if (injected != CL_SUCCESS || size > largest_buffer) {
        if (status != nullptr) *status = injected != CL_SUCCESS ? injected : CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return nullptr;
    }
    static auto* next = real<decltype(clCreateBuffer)>("clCreateBuffer");
    cl_mem result = next(context, flags, size, host, status);
    if (from_program && result != nullptr) faults::count(Handle::memory, 1);
    return result;
}

DECLIVITY_EXPORT cl_int clFinish(cl_command_queue queue) {
    ++finish;
    DECLIVITY_INJECT_FAULT(clFinish, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) return injected;
    static auto* next = real<decltype(clFinish)>("clFinish");
    return next(queue);
}

DECLIVITY_EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
    ++wait_for_events;
    DECLIVITY_INJECT_FAULT(clWaitForEvents, CL_OUT_OF_RESOURCES, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                           CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) return injected;
    static auto* next = real<decltype(clWaitForEvents)>("clWaitForEvents");
    const cl_int status = next(count, events);
    return status == CL_SUCCESS && faults::failed_wait() ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : status;
}

DECLIVITY_EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                            size_t size, void* to, cl_uint count, const cl_event* events,
                                            cl_event* event) {
    blocking_transfer += blocking == CL_TRUE;
    DECLIVITY_INJECT_FAULT(clEnqueueReadBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                           CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) return injected;
    static auto* next = real<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
    return with_event(next(queue, buffer, blocking, offset, size, to, count, events, event), event);
}

DECLIVITY_EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                             size_t size, const void* from, cl_uint count, const cl_event* events,
                                             cl_event* event) {
    blocking_transfer += blocking == CL_TRUE;
    DECLIVITY_INJECT_FAULT(clEnqueueWriteBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                           CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) return injected;
    if (written_memory::active())
        return written_memory::write(queue, buffer, blocking, offset, size, from, count, events, event);
    static auto* next = real<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer");
    return with_event(next(queue, buffer, blocking, offset, size, from, count, events, event), event);
}

DECLIVITY_EXPORT void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                          size_t offset, size_t size, cl_uint count, const cl_event* events,
                                          cl_event* event, cl_int* status) {
    blocking_transfer += blocking == CL_TRUE;
    DECLIVITY_INJECT_FAULT(clEnqueueMapBuffer, CL_MAP_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) {
        if (status != nullptr) *status = injected;
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
    DECLIVITY_INJECT_FAULT(clEnqueueFillBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                           CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) return injected;
    if (written_memory::active())
        return written_memory::fill(queue, buffer, pattern, unit, offset, size, count, events, event);
    static auto* next = real<decltype(clEnqueueFillBuffer)>("clEnqueueFillBuffer");
    return with_event(next(queue, buffer, pattern, unit, offset, size, count, events, event), event);
}

DECLIVITY_EXPORT cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                            size_t to_offset, size_t size, cl_uint count, const cl_event* events,
                                            cl_event* event) {
    DECLIVITY_INJECT_FAULT(clEnqueueCopyBuffer, CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                           CL_OUT_OF_HOST_MEMORY)
    if (injected != CL_SUCCESS) return injected;
    if (written_memory::active())
        return written_memory::copy(queue, from, to, from_offset, to_offset, size, count, events, event);
    static auto* next = real<decltype(clEnqueueCopyBuffer)>("clEnqueueCopyBuffer");
    return with_event(next(queue, from, to, from_offset, to_offset, size, count, events, event), event);
}

DECLIVITY_EXPORT cl_int clReleaseMemObject(cl_mem object) {
    const bool from_program = faults::is_from_program(__builtin_return_address(0));
    if (from_program) faults::count_call();
    cl_uint reference_count = 0;
    if (written_memory::active() &&
        clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof reference_count, &reference_count, nullptr) ==
            CL_SUCCESS &&
        reference_count == 1)
        return CL_SUCCESS;
    static auto* next = real<decltype(clReleaseMemObject)>("clReleaseMemObject");
    const cl_int status = next(object);
    if (from_program && status == CL_SUCCESS) faults::count(Handle::memory, -1);
    return status;
}

}  // extern "C"

namespace declivity::test {

BufferSizeLimit::BufferSizeLimit(std::size_t bytes) { largest_buffer = bytes; }
BufferSizeLimit::~BufferSizeLimit() { largest_buffer = ~std::size_t{0}; }

OpenClCalls opencl_calls() { return {create_buffer, finish, wait_for_events, blocking_transfer}; }

}  // namespace declivity::test
