#include "tests/support/opencl_calls.hpp"

#include <atomic>

#include <CL/cl.h>

#include "tests/support/real_function.hpp"
#include "tests/support/written_memory.hpp"

using declivity::test::real;
namespace written_memory = declivity::test::written_memory;

namespace {

std::atomic<long> create_buffer, finish, wait_for_events, blocking_transfer;
std::atomic<std::size_t> largest_buffer{~std::size_t{0}};

}  // namespace

// A program's own definition of a symbol is taken before that of a shared library, by other shared libraries as well.
extern "C" {

__attribute__((visibility("default"))) cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* status) {
    ++create_buffer;
    if (size > largest_buffer) {
        if (status != nullptr) *status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return nullptr;
    }
    static auto* next = real<decltype(clCreateBuffer)>("clCreateBuffer");
    return next(context, flags, size, host, status);
}

__attribute__((visibility("default"))) cl_int clFinish(cl_command_queue queue) {
    ++finish;
    static auto* next = real<decltype(clFinish)>("clFinish");
    return next(queue);
}

__attribute__((visibility("default"))) cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
    ++wait_for_events;
    static auto* next = real<decltype(clWaitForEvents)>("clWaitForEvents");
    return next(count, events);
}

__attribute__((visibility("default"))) cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                                                                  void* to, cl_uint count, const cl_event* events, cl_event* event) {
    blocking_transfer += blocking == CL_TRUE;
    static auto* next = real<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
    return next(queue, buffer, blocking, offset, size, to, count, events, event);
}

__attribute__((visibility("default"))) cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                                                                   const void* from, cl_uint count, const cl_event* events, cl_event* event) {
    blocking_transfer += blocking == CL_TRUE;
    if (written_memory::active()) return written_memory::write(queue, buffer, blocking, offset, size, from, count, events, event);
    static auto* next = real<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer");
    return next(queue, buffer, blocking, offset, size, from, count, events, event);
}

__attribute__((visibility("default"))) void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                                                                size_t size, cl_uint count, const cl_event* events, cl_event* event, cl_int* status) {
    blocking_transfer += blocking == CL_TRUE;
    static auto* next = real<decltype(clEnqueueMapBuffer)>("clEnqueueMapBuffer");
    return next(queue, buffer, blocking, flags, offset, size, count, events, event, status);
}

__attribute__((visibility("default"))) cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t unit, size_t offset,
                                                                  size_t size, cl_uint count, const cl_event* events, cl_event* event) {
    if (written_memory::active()) return written_memory::fill(queue, buffer, pattern, unit, offset, size, count, events, event);
    static auto* next = real<decltype(clEnqueueFillBuffer)>("clEnqueueFillBuffer");
    return next(queue, buffer, pattern, unit, offset, size, count, events, event);
}

__attribute__((visibility("default"))) cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                                                                  size_t size, cl_uint count, const cl_event* events, cl_event* event) {
    if (written_memory::active()) return written_memory::copy(queue, from, to, from_offset, to_offset, size, count, events, event);
    static auto* next = real<decltype(clEnqueueCopyBuffer)>("clEnqueueCopyBuffer");
    return next(queue, from, to, from_offset, to_offset, size, count, events, event);
}

__attribute__((visibility("default"))) cl_int clReleaseMemObject(cl_mem object) {
    cl_uint owners = 0;
    if (written_memory::active() && clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof owners, &owners, nullptr) == CL_SUCCESS && owners == 1)
        return CL_SUCCESS;
    static auto* next = real<decltype(clReleaseMemObject)>("clReleaseMemObject");
    return next(object);
}

}  // extern "C"

namespace declivity::test {

RefuseBuffers::RefuseBuffers(std::size_t above) { largest_buffer = above; }
RefuseBuffers::~RefuseBuffers() { largest_buffer = ~std::size_t{0}; }

OpenClCalls opencl_calls() { return {create_buffer, finish, wait_for_events, blocking_transfer}; }

}  // namespace declivity::test
