// Fails one OpenCL call of the whole test program, including CLBlast, like a driver that ran out of a resource; counts
// live handles; makes commands fail asynchronously.
//
// Releases are counted, never failed: OpenCL defines no recovery from a failed release, so that a program can only
// ignore it.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

namespace declivity::test {

/// Live handles of the program: created or retained, minus released.
struct OpenClHandles {
    long memory = 0, events = 0, kernels = 0, programs = 0, queues = 0, contexts = 0;
    auto operator<=>(const OpenClHandles&) const = default;
    OpenClHandles operator-(const OpenClHandles& other) const;
    [[nodiscard]] std::string text() const;
};
OpenClHandles opencl_handles();

/// Numbers the OpenCL calls during its lifetime, from 0, and fails at most one of them. One at a time.
class OpenClFault {
  public:
    /// @param failing_call number of the call to fail; -1: only counts
    explicit OpenClFault(long failing_call = -1);
    ~OpenClFault();
    OpenClFault(const OpenClFault&) = delete;
    OpenClFault& operator=(const OpenClFault&) = delete;

    /// Names of the functions called so far.
    [[nodiscard]] std::vector<std::string> calls() const;
    /// The function that failed, or "".
    [[nodiscard]] std::string function() const;
    /// The status returned, one of those that the function may return, or 0.
    [[nodiscard]] int code() const;
};

/// During its lifetime, every call of this function fails. One at a time per name.
class FailingFunction {
  public:
    explicit FailingFunction(const char* function);
    ~FailingFunction();
    FailingFunction(const FailingFunction&) = delete;
    FailingFunction& operator=(const FailingFunction&) = delete;

  private:
    const char* function_;
};

/// During its lifetime, clGetEventInfo reports this (negative) status for each command. Other waits succeed, as with a
/// driver that reports it only on request; or, with `wait_fails`, clWaitForEvents fails as in the standard.
class FailedCommands {
  public:
    FailedCommands(int status, bool wait_fails);
    ~FailedCommands();
    FailedCommands(const FailedCommands&) = delete;
    FailedCommands& operator=(const FailedCommands&) = delete;
};

/// Number of OpenCL calls of the program, counted from before its static initialisation.
long opencl_call_count();

namespace faults {
/// Returns whether a call with this return address is from the program, the library or CLBlast.
bool is_from_program(const void* return_address);
/// Called first by the interposed functions: 0 to continue, or the status to fail with.
int injected_status(const char* function, std::span<const int> codes);
void count_call();  ///< for a function that never fails
enum class Handle { memory, event, kernel, program, queue, context };
void count(Handle kind, long change);
int failed_status();  ///< of FailedCommands, or 0
bool failed_wait();   ///< whether clWaitForEvents should fail
}  // namespace faults

}  // namespace declivity::test
