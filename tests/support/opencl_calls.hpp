// Counts the OpenCL calls of the whole test program, including CLBlast, by interposing the functions, and limits the
// size of buffers on demand.
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

/// During its lifetime, clCreateBuffer fails for larger buffers, like a device that is out of memory.
class BufferSizeLimit {
  public:
    explicit BufferSizeLimit(std::size_t bytes);
    ~BufferSizeLimit();
    BufferSizeLimit(const BufferSizeLimit&) = delete;
    BufferSizeLimit& operator=(const BufferSizeLimit&) = delete;
};

}  // namespace declivity::test
