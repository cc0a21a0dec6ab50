// Counts the OpenCL calls of the whole test program, including CLBlast, by interposing the functions; refuses some on
// demand.
#pragma once

#include <cstddef>

namespace declivity::test {

struct OpenClCalls {
    long create_buffer = 0;      ///< clCreateBuffer
    long finish = 0;             ///< clFinish
    long wait_for_events = 0;    ///< clWaitForEvents
    long blocking_transfer = 0;  ///< reads, writes and maps with the blocking flag
};

/// Number of calls of each since the program started.
OpenClCalls opencl_calls();

/// During its lifetime, clCreateBuffer refuses larger buffers, like a device that is out of memory.
class RefuseBuffers {
  public:
    explicit RefuseBuffers(std::size_t above);
    ~RefuseBuffers();
    RefuseBuffers(const RefuseBuffers&) = delete;
    RefuseBuffers& operator=(const RefuseBuffers&) = delete;
};

}  // namespace declivity::test
