// Layer 1. OpenCL interoperability: raw handles out of and into the library. The only public header that includes the
// OpenCL headers.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <functional>
#include <span>
#include <string_view>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::interop {

/// @addtogroup runtime
/// @{

/// Memory of a buffer: a range of a larger cl_mem of the pool.
struct RawBuffer {
    cl_mem memory;       ///< owned by the library: valid while the Buffer lives; retain it to extend its lifetime
    std::size_t offset;  ///< bytes
    std::size_t size;    ///< bytes
};

/// OpenCL device, owned by the library.
DECLIVITY_API cl_device_id device_id(const Device& device);
/// OpenCL context, owned by the library.
DECLIVITY_API cl_context context(const Device& device);
/// Queue of computations, owned by the library; commands enqueued to it run in order with those of the library.
DECLIVITY_API cl_command_queue compute_queue(const Device& device);
/// Memory of a buffer.
DECLIVITY_API RawBuffer raw(const Buffer& buffer);

/// Enqueues custom commands that use the given buffers to compute_queue().
using Commands = std::function<void(std::span<const RawBuffer> buffers)>;

/// Calls `commands` with the current memory of the buffers. While this thread captures (runtime/command_list.hpp), the
/// function is stored and called again at each replay, when the memory may be different: it must not own memory of the
/// step, nor obtain compute_queue() in any other way.
DECLIVITY_API void enqueue(const Device& device, std::string_view name, std::span<const Buffer> buffers,
                           const Commands& commands);

/// A Device over an existing context and in-order queue (both are retained). Two calls with the same queue return the
/// same Device.
/// @throws ValueError if the queue is out-of-order or does not belong to the context
DECLIVITY_API Device wrap(cl_context context, cl_command_queue queue);

/// A Buffer over existing memory (retained); `offset` must be a multiple of 16 bytes.
DECLIVITY_API Buffer wrap(const Device& device, cl_mem memory, std::size_t offset, std::size_t bytes);

/// True if a Profiler is active, that is, if events of custom commands are needed.
DECLIVITY_API bool profiled(const Device& device);
/// Adds a custom kernel enqueued to compute_queue() to the profile.
/// @param event of the command, retained; profile() does not wait for it
DECLIVITY_API void profile(const Device& device, std::string_view name, cl_event event);

/// @}

}  // namespace declivity::interop
