#include "tests/support/written_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/support/real_function.hpp"

namespace declivity::test::written_memory {
namespace {

constexpr const char* kSource =
    "__kernel void put(__global UNIT* to, const ulong to_offset, __global const UNIT* from, const ulong from_offset) "
    "{\n"
    "    const ulong row = get_global_id(1);\n"
    "    to[to_offset + row * get_global_size(0) + get_global_id(0)] = from[from_offset + get_global_id(0)];\n"
    "}\n";

template <class T>
T queue_info(cl_command_queue queue, cl_command_queue_info property) {
    T value{};
    clGetCommandQueueInfo(queue, property, sizeof value, static_cast<void*>(&value), nullptr);
    return value;
}

std::mutex mutex;

/// The kernel for units of 1 or 4 bytes; the lock must be held.
cl_kernel kernel(cl_command_queue queue, bool by_words) {
    static std::map<std::pair<cl_context, bool>, cl_kernel> kernels;
    auto* const context = queue_info<cl_context>(queue, CL_QUEUE_CONTEXT);
    cl_kernel& kernel = kernels[{context, by_words}];
    if (kernel == nullptr) {
        const char* source = kSource;
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
        auto* const device = queue_info<cl_device_id>(queue, CL_QUEUE_DEVICE);
        clBuildProgram(program, 1, &device, by_words ? "-DUNIT=uint" : "-DUNIT=uchar", nullptr, nullptr);
        kernel = clCreateKernel(program, "put", nullptr);
        clRetainContext(context);  // so that no other context gets its address
    }
    return kernel;
}

/// Copies `size` bytes, `repeats` times consecutively.
cl_int put(cl_command_queue queue, cl_mem to, size_t to_offset, cl_mem from, size_t from_offset, size_t size,
           size_t repeats, cl_uint count, const cl_event* events, cl_event* event) {
    const bool by_words = (to_offset | from_offset | size) % 4 == 0;
    const size_t unit = by_words ? 4 : 1;
    const cl_ulong to_unit = to_offset / unit, from_unit = from_offset / unit;
    const std::scoped_lock lock(mutex);
    cl_kernel run = kernel(queue, by_words);
    clSetKernelArg(run, 0, sizeof(cl_mem), static_cast<const void*>(&to));
    clSetKernelArg(run, 1, sizeof to_unit, &to_unit);
    clSetKernelArg(run, 2, sizeof(cl_mem), static_cast<const void*>(&from));
    clSetKernelArg(run, 3, sizeof from_unit, &from_unit);
    const size_t global[2] = {size / unit, repeats};
    return clEnqueueNDRangeKernel(queue, run, 2, nullptr, global, nullptr, count, events, event);
}

/// A buffer with these bytes, never released.
cl_mem buffer_of(cl_command_queue queue, const void* bytes, size_t size) {
    cl_mem buffer = real<decltype(clCreateBuffer)>("clCreateBuffer")(queue_info<cl_context>(queue, CL_QUEUE_CONTEXT),
                                                                     CL_MEM_READ_WRITE, size, nullptr, nullptr);
    void* const source_copy = std::malloc(size);  // as long as the queue may need it
    std::memcpy(source_copy, bytes, size);
    real<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer")(queue, buffer, CL_FALSE, 0, size, source_copy, 0,
                                                                 nullptr, nullptr);
    return buffer;
}

size_t size_of(cl_mem buffer) {
    size_t size = 0;
    clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, nullptr);
    return size;
}

}  // namespace

bool active() {
    static const bool value = std::getenv("OCLGRIND_UNINITIALIZED") != nullptr;
    return value;
}

cl_int write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void* from,
             cl_uint count, const cl_event* events, cl_event* event) {
    // Invalid calls, and those that cover the whole buffer, are forwarded.
    if (from == nullptr || size == 0 || offset + size > size_of(buffer) || (offset == 0 && size == size_of(buffer)))
        return real<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer")(queue, buffer, blocking, offset, size, from,
                                                                            count, events, event);
    const cl_int status = put(queue, buffer, offset, buffer_of(queue, from, size), 0, size, 1, count, events, event);
    return status == CL_SUCCESS && blocking == CL_TRUE ? real<decltype(clFinish)>("clFinish")(queue) : status;
}

cl_int fill(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t unit, size_t offset, size_t size,
            cl_uint count, const cl_event* events, cl_event* event) {
    if (pattern == nullptr || unit == 0 || size == 0 || size % unit != 0 || offset + size > size_of(buffer))
        return real<decltype(clEnqueueFillBuffer)>("clEnqueueFillBuffer")(queue, buffer, pattern, unit, offset, size,
                                                                          count, events, event);
    return put(queue, buffer, offset, buffer_of(queue, pattern, unit), 0, unit, size / unit, count, events, event);
}

cl_int copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size,
            cl_uint count, const cl_event* events, cl_event* event) {
    if (size == 0 || from_offset + size > size_of(from) || to_offset + size > size_of(to))
        return real<decltype(clEnqueueCopyBuffer)>("clEnqueueCopyBuffer")(queue, from, to, from_offset, to_offset, size,
                                                                          count, events, event);
    return put(queue, to, to_offset, from, from_offset, size, 1, count, events, event);
}

}  // namespace declivity::test::written_memory
