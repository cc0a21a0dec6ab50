#include "tests/support/opencl_calls.hpp"

#include <atomic>

#include <CL/cl.h>
#include <dlfcn.h>

namespace {

std::atomic<long> create_buffer, finish, wait_for_events, blocking_transfer;
std::atomic<std::size_t> largest_buffer{~std::size_t{0}};

/// The function of the OpenCL library that this program's own stands before.
template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

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
    static auto* next = real<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer");
    return next(queue, buffer, blocking, offset, size, from, count, events, event);
}

__attribute__((visibility("default"))) void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                                                                size_t size, cl_uint count, const cl_event* events, cl_event* event, cl_int* status) {
    blocking_transfer += blocking == CL_TRUE;
    static auto* next = real<decltype(clEnqueueMapBuffer)>("clEnqueueMapBuffer");
    return next(queue, buffer, blocking, flags, offset, size, count, events, event, status);
}

}  // extern "C"

namespace declivity::test {

RefuseBuffers::RefuseBuffers(std::size_t above) { largest_buffer = above; }
RefuseBuffers::~RefuseBuffers() { largest_buffer = ~std::size_t{0}; }

OpenClCalls opencl_calls() { return {create_buffer, finish, wait_for_events, blocking_transfer}; }

}  // namespace declivity::test
