// Counts OpenCL calls of the whole test program, CLBlast's included, by standing before the real functions; refuses
// some on demand.
#pragma once

#include <cstddef>

namespace declivity::test {

struct OpenClCalls {
    long create_buffer = 0;      ///< clCreateBuffer
    long finish = 0;             ///< clFinish
    long wait_for_events = 0;    ///< clWaitForEvents
    long blocking_transfer = 0;  ///< reads, writes and maps with the blocking flag
};

/// How often each was called since the program started.
OpenClCalls opencl_calls();

/// While one lives, clCreateBuffer refuses buffers of more bytes, as a device does that has no more memory.
class RefuseBuffers {
  public:
    explicit RefuseBuffers(std::size_t above);
    ~RefuseBuffers();
    RefuseBuffers(const RefuseBuffers&) = delete;
    RefuseBuffers& operator=(const RefuseBuffers&) = delete;
};

}  // namespace declivity::test
