// Refuses one OpenCL call of the whole test program, CLBlast's included, as a driver does that has run out of
// something; counts the handles that are held; makes commands fail behind the host's back.
//
// Releases are counted, never refused: OpenCL gives no way on when one fails, so that no program can do better than to
// forget it.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

namespace declivity::test {

/// Handles that the program holds: what was created or retained, less what was released.
struct OpenClHandles {
    long memory = 0, events = 0, kernels = 0, programs = 0, queues = 0, contexts = 0;
    auto operator<=>(const OpenClHandles&) const = default;
    OpenClHandles operator-(const OpenClHandles& other) const;
    [[nodiscard]] std::string text() const;
};
OpenClHandles opencl_handles();

/// Numbers the OpenCL calls made while it lives, from 0, and refuses at most one of them. One at a time.
class OpenClFault {
  public:
    /// @param refused number of the call to refuse; none: only counts
    explicit OpenClFault(long refused = -1);
    ~OpenClFault();
    OpenClFault(const OpenClFault&) = delete;
    OpenClFault& operator=(const OpenClFault&) = delete;

    /// Names of the functions called so far.
    [[nodiscard]] std::vector<std::string> calls() const;
    /// The function that was refused, or "".
    [[nodiscard]] std::string function() const;
    /// The status it gave, one of those that fit the function, or 0.
    [[nodiscard]] int code() const;
};

/// While one lives, every call of this function is refused. One at a time of each name.
class RefusedFunction {
  public:
    explicit RefusedFunction(const char* function);
    ~RefusedFunction();
    RefusedFunction(const RefusedFunction&) = delete;
    RefusedFunction& operator=(const RefusedFunction&) = delete;

  private:
    const char* function_;
};

/// While one lives, clGetEventInfo says of each command that it ended with this status, which is negative. What else
/// waits for events goes on as if nothing were wrong, as with a driver that tells only who asks; or, with `told`,
/// clWaitForEvents fails as the standard has it.
class FailedCommands {
  public:
    FailedCommands(int status, bool told);
    ~FailedCommands();
    FailedCommands(const FailedCommands&) = delete;
    FailedCommands& operator=(const FailedCommands&) = delete;
};

/// How many OpenCL calls the program has made, counted from before its static initialisation.
long opencl_call_count();

namespace faults {
/// Whether a call that returns there is the program's, a library's of ours, or CLBlast's.
bool of_program(const void* return_address);
/// What the interposed functions of a call ask first: 0 to go on, or the status to fail with.
int refusal(const char* function, std::span<const int> codes);
void count_call();  ///< of a function that is never refused
enum class Handle { memory, event, kernel, program, queue, context };
void count(Handle kind, long change);
int failed_status();  ///< of FailedCommands, or 0
bool failed_wait();   ///< whether clWaitForEvents is to fail
}  // namespace faults

}  // namespace declivity::test
