// Counts OpenCL calls of the whole test program, CLBlast's included, by standing before the real functions.
#pragma once

namespace declivity::test {

struct OpenClCalls {
    long create_buffer = 0;      ///< clCreateBuffer
    long finish = 0;             ///< clFinish
    long wait_for_events = 0;    ///< clWaitForEvents
    long blocking_transfer = 0;  ///< reads, writes and maps with the blocking flag
};

/// How often each was called since the program started.
OpenClCalls opencl_calls();

}  // namespace declivity::test
