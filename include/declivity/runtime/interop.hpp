// Layer 1. For programs that already use OpenCL: raw handles out of the library and into it. The one public header
// that includes OpenCL's own.
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

/// A buffer's memory: a part of a larger cl_mem of the pool.
struct RawBuffer {
    cl_mem memory;       ///< owned by the library: valid while the Buffer lives; retain it to keep it longer
    std::size_t offset;  ///< bytes
    std::size_t size;    ///< bytes
};

/// The library's handles; it keeps owning them. Commands enqueued to the compute queue run in order with the
/// library's own.
DECLIVITY_API cl_device_id device_id(const Device& device);
DECLIVITY_API cl_context context(const Device& device);
DECLIVITY_API cl_command_queue compute_queue(const Device& device);
DECLIVITY_API RawBuffer raw(const Buffer& buffer);

/// Enqueues commands of its own to compute_queue(), which work on these buffers.
using Commands = std::function<void(std::span<const RawBuffer> buffers)>;

/// Calls `commands` with where the buffers lie. While this thread records (runtime/recording.hpp), the function is kept
/// and called at each replay, when the buffers may lie elsewhere: it must hold no memory of the step, nor take
/// compute_queue() anywhere else.
DECLIVITY_API void enqueue(const Device& device, std::string_view name, std::span<const Buffer> buffers,
                           const Commands& commands);

/// A Device over a context and an in-order queue of yours (both are retained). Two calls with the same queue give
/// the same Device.
/// @throws ValueError when the queue runs out of order or does not belong to the context
DECLIVITY_API Device wrap(cl_context context, cl_command_queue queue);

/// A Buffer over memory of yours (retained); `offset` must be a multiple of 16 bytes.
DECLIVITY_API Buffer wrap(const Device& device, cl_mem memory, std::size_t offset, std::size_t bytes);

/// Whether a Profiler runs, so that events of commands of your own are worth asking for.
DECLIVITY_API bool profiled(const Device& device);
/// Shows a kernel that you enqueued to compute_queue() in the profile.
/// @param event of the command, retained; profile() does not wait for it
DECLIVITY_API void profile(const Device& device, std::string_view name, cl_event event);

}  // namespace declivity::interop
