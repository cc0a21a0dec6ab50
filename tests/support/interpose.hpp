// Definitions of OpenCL functions that override the real ones. To be used within extern "C".
#pragma once

#include "tests/support/opencl_faults.hpp"
#include "tests/support/real_function.hpp"

// A symbol defined by the program overrides that of a shared library, also for other shared libraries.
#define DECLIVITY_EXPORT __attribute__((visibility("default")))

/// `if` condition before a call: whether to fail it, and with which status. A call by the driver itself of a public
/// OpenCL function passes here too, and is forwarded.
#define DECLIVITY_INJECT_FAULT(name, ...)                                                            \
    static constexpr int kCodes[] = {__VA_ARGS__};                                                   \
    const bool from_program = declivity::test::faults::is_from_program(__builtin_return_address(0)); \
    const cl_int injected = from_program ? declivity::test::faults::injected_status(#name, kCodes) : CL_SUCCESS;

/// A function that returns a status. Its error codes are last.
#define DECLIVITY_CALL(name, parameters, arguments, ...)                  \
    DECLIVITY_EXPORT cl_int name parameters {                             \
        DECLIVITY_INJECT_FAULT(name, __VA_ARGS__)                         \
        if (injected != CL_SUCCESS) return injected;                      \
        static auto* next = declivity::test::real<decltype(name)>(#name); \
        return next arguments;                                            \
    }

/// A function whose last parameter is an optional event.
#define DECLIVITY_ENQUEUE(name, parameters, arguments, ...)               \
    DECLIVITY_EXPORT cl_int name parameters {                             \
        DECLIVITY_INJECT_FAULT(name, __VA_ARGS__)                         \
        if (injected != CL_SUCCESS) return injected;                      \
        static auto* next = declivity::test::real<decltype(name)>(#name); \
        const cl_int result = next arguments;                             \
        if (from_program && result == CL_SUCCESS && event != nullptr)     \
            declivity::test::faults::count(Handle::event, 1);             \
        return result;                                                    \
    }

/// A function that returns a new object; the last parameter is its status.
#define DECLIVITY_CREATE(type, name, kind, parameters, arguments, ...)                  \
    DECLIVITY_EXPORT type name parameters {                                             \
        DECLIVITY_INJECT_FAULT(name, __VA_ARGS__)                                       \
        if (injected != CL_SUCCESS) {                                                   \
            if (status != nullptr) *status = injected;                                  \
            return nullptr;                                                             \
        }                                                                               \
        static auto* next = declivity::test::real<decltype(name)>(#name);               \
        type result = next arguments;                                                   \
        if (from_program && result != nullptr) declivity::test::faults::count(kind, 1); \
        return result;                                                                  \
    }

#define DECLIVITY_RETAIN(name, type, kind)                                                 \
    DECLIVITY_EXPORT cl_int name(type object) {                                            \
        DECLIVITY_INJECT_FAULT(name, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)           \
        if (injected != CL_SUCCESS) return injected;                                       \
        static auto* next = declivity::test::real<decltype(name)>(#name);                  \
        const cl_int result = next(object);                                                \
        if (from_program && result == CL_SUCCESS) declivity::test::faults::count(kind, 1); \
        return result;                                                                     \
    }

#define DECLIVITY_RELEASE(name, type, kind)                                                              \
    DECLIVITY_EXPORT cl_int name(type object) {                                                          \
        static auto* next = declivity::test::real<decltype(name)>(#name);                                \
        const bool from_program = declivity::test::faults::is_from_program(__builtin_return_address(0)); \
        if (from_program) declivity::test::faults::count_call();                                         \
        const cl_int result = next(object);                                                              \
        if (from_program && result == CL_SUCCESS) declivity::test::faults::count(kind, -1);              \
        return result;                                                                                   \
    }
