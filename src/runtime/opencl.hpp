// Layer 1, private. OpenCL through CLHPP, and what its errors are called.
#pragma once

// 1.1 rather than the 1.2 that the library needs: between 1.2 and 1.9 the 2023 release of CLHPP calls a function of its
// own that it does not define.
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

#include <declivity/runtime/process.hpp>

namespace declivity::detail {

/// "CL_INVALID_WORK_GROUP_SIZE" for -54, and so on.
std::string_view status_name(int status);

/// Throws what fits the status: OutOfMemory for memory that ran out, DeviceError otherwise.
[[noreturn]] void throw_status(int status, std::string_view doing, const std::string& device);

/// Runs `call`, turning a cl::Error into an exception of the library.
template <class Call>
decltype(auto) checked(std::string_view doing, const std::string& device, Call&& call) {
    refuse_after_fork(doing);
    try {
        return std::forward<Call>(call)();
    } catch (const cl::Error& error) {
        throw_status(error.err(), doing, device);
    }
}

/// Whether a call that fails so may well succeed the next time: then no answer is to be drawn from it.
constexpr bool passes(int status) { return status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY; }

/// A further owner of an OpenCL object. Not by assignment: where retaining fails, CLHPP's leaves a handle that releases
/// what it does not own.
template <class T>
T shared(const T& object, std::string_view doing, const std::string& device) {
    return checked(doing, device, [&] { return T(object); });
}

/// To be called by destructors: in a forked child the driver must not be asked, not even to let go, since one of its
/// threads may have held its locks.
template <class T>
void let_go(T& object) noexcept {
    if (after_fork()) object() = nullptr;
}

}  // namespace declivity::detail
