// Helps Oclgrind's checker of uninitialised memory over three faults of its own (seen in 21.10). Its record of what has
// been written to a buffer becomes exactly as long as the last write from the host; a copy or a fill is such a write, a
// fill even one for each repetition of its pattern; and a new buffer inherits the record of a released one whose
// address it gets. Whatever lies outside the record counts as never written. So, while that checker runs, buffers are
// never released, and fills, copies and writes of a part are done by kernels, which it follows exactly.
#pragma once

#include <CL/cl.h>

namespace declivity::test::written_memory {

/// Whether Oclgrind runs this program with that checker.
bool active();

// In place of the functions of the same names; for use where active() only.
cl_int write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void* from,
             cl_uint count, const cl_event* events, cl_event* event);
cl_int fill(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t unit, size_t offset, size_t size,
            cl_uint count, const cl_event* events, cl_event* event);
cl_int copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size,
            cl_uint count, const cl_event* events, cl_event* event);

}  // namespace declivity::test::written_memory
