// Layer 1, private. OpenCL through CLHPP, and the names of its error codes.
#pragma once

// 1.1 rather than the 1.2 that the library needs: for targets from 1.2 to 1.9 the 2023 release of CLHPP calls a
// function that it does not define.
#ifndef CL_HPP_TARGET_OPENCL_VERSION
#define CL_HPP_TARGET_OPENCL_VERSION 300
#define CL_HPP_MINIMUM_OPENCL_VERSION 110
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue
#endif
#ifndef CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_ENABLE_EXCEPTIONS
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#include <CL/opencl.hpp>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#include <CL/cl_ext.h>

#include <string>
#include <string_view>
#include <utility>

#include "runtime/process.hpp"

namespace declivity::detail {

/// Name of a status: "CL_INVALID_WORK_GROUP_SIZE" for -54.
std::string_view status_name(int status);

/// Throws the exception of a status: OutOfMemory if memory ran out, DeviceError otherwise.
[[noreturn]] void throw_status(int status, std::string_view action, const std::string& device);

/// Runs `call` and converts a cl::Error to an exception of the library.
template <class Call>
decltype(auto) checked(std::string_view action, const std::string& device, Call&& call) {
    refuse_after_fork(action);
    try {
        return std::forward<Call>(call)();
    } catch (const cl::Error& error) {
        throw_status(error.err(), action, device);
    }
}

/// Returns whether an error is transient: the call may succeed the next time, so no conclusion may be drawn from it.
constexpr bool is_transient(int status) { return status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY; }

/// Returns another reference to an OpenCL object. Not by assignment: if retaining fails, CLHPP keeps a handle that
/// later releases what it does not own.
template <class T>
T shared(const T& object, std::string_view action, const std::string& device) {
    return checked(action, device, [&] { return T(object); });
}

/// Releases an object in a destructor. In a forked child the driver must not be called, not even to release, since one
/// of its threads may have held its locks.
template <class T>
void abandon_after_fork(T& object) noexcept {
    if (after_fork()) object() = nullptr;
}

}  // namespace declivity::detail
