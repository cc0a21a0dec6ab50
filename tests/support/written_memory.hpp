// Works around three errors of Oclgrind's checker of uninitialised memory (seen in 21.10). Its record of initialised
// bytes is truncated to the length of the last host write; a copy or a fill counts as such a write, a fill even once
// per repetition of its pattern; and a new buffer inherits the record of a released one at the same address. Everything
// outside of the record counts as uninitialised. So, with that checker, buffers are never released, and fills, copies
// and partial writes are done by kernels, which it tracks correctly.
#pragma once

#include <CL/cl.h>

namespace declivity::test::written_memory {

/// Returns whether Oclgrind runs this program with that checker.
bool active();

// Replacements for the functions of the same names; only if active().
cl_int write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void* from,
             cl_uint count, const cl_event* events, cl_event* event);
cl_int fill(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t unit, size_t offset, size_t size,
            cl_uint count, const cl_event* events, cl_event* event);
cl_int copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size,
            cl_uint count, const cl_event* events, cl_event* event);

}  // namespace declivity::test::written_memory
