// Definitions of OpenCL functions that stand in front of the real ones. To be used within extern "C".
#pragma once

#include "tests/support/opencl_faults.hpp"
#include "tests/support/real_function.hpp"

// A program's own definition of a symbol is taken before that of a shared library, by other shared libraries as well.
#define DECLIVITY_EXPORT __attribute__((visibility("default")))

/// `if` in front of a call: whether it is the one to refuse, and the status to refuse it with.
#define DECLIVITY_REFUSAL(name, ...)                              \
    static constexpr int kCodes[] = {__VA_ARGS__};                \
    const cl_int refused = declivity::test::faults::refusal(#name, kCodes);

/// A function that gives a status. Its codes stand last.
#define DECLIVITY_CALL(name, parameters, arguments, ...)                    \
    DECLIVITY_EXPORT cl_int name parameters {                               \
        DECLIVITY_REFUSAL(name, __VA_ARGS__)                                \
        if (refused != CL_SUCCESS) return refused;                          \
        static auto* next = declivity::test::real<decltype(name)>(#name);   \
        return next arguments;                                              \
    }

/// A function whose last parameter is an event that the caller may want.
#define DECLIVITY_ENQUEUE(name, parameters, arguments, ...)                                             \
    DECLIVITY_EXPORT cl_int name parameters {                                                           \
        DECLIVITY_REFUSAL(name, __VA_ARGS__)                                                            \
        if (refused != CL_SUCCESS) return refused;                                                      \
        static auto* next = declivity::test::real<decltype(name)>(#name);                               \
        const cl_int result = next arguments;                                                           \
        if (result == CL_SUCCESS && event != nullptr) declivity::test::faults::count(Handle::event, 1); \
        return result;                                                                                  \
    }

/// A function that gives a new object; the last parameter is its status.
#define DECLIVITY_MAKE(type, name, kind, parameters, arguments, ...)             \
    DECLIVITY_EXPORT type name parameters {                                      \
        DECLIVITY_REFUSAL(name, __VA_ARGS__)                                     \
        if (refused != CL_SUCCESS) {                                             \
            if (status != nullptr) *status = refused;                            \
            return nullptr;                                                      \
        }                                                                        \
        static auto* next = declivity::test::real<decltype(name)>(#name);        \
        type made = next arguments;                                              \
        if (made != nullptr) declivity::test::faults::count(kind, 1);            \
        return made;                                                             \
    }

#define DECLIVITY_RETAIN(name, type, kind)                                         \
    DECLIVITY_EXPORT cl_int name(type object) {                                    \
        DECLIVITY_REFUSAL(name, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)        \
        if (refused != CL_SUCCESS) return refused;                                 \
        static auto* next = declivity::test::real<decltype(name)>(#name);          \
        const cl_int result = next(object);                                        \
        if (result == CL_SUCCESS) declivity::test::faults::count(kind, 1);         \
        return result;                                                             \
    }

#define DECLIVITY_RELEASE(name, type, kind)                                        \
    DECLIVITY_EXPORT cl_int name(type object) {                                    \
        static auto* next = declivity::test::real<decltype(name)>(#name);          \
        declivity::test::faults::count_call();                                     \
        const cl_int result = next(object);                                        \
        if (result == CL_SUCCESS) declivity::test::faults::count(kind, -1);        \
        return result;                                                             \
    }
