// Layer 1, private. Launch arguments in the form that clSetKernelArg takes.
#pragma once

#include <span>
#include <string>

#include <declivity/runtime/launch.hpp>
#include <fmt/format.h>

#include "block.hpp"
#include "program_cache.hpp"
#include "runtime/access.hpp"

namespace declivity::detail {

/// Calls set(index, kind, size, data) for each argument; a buffer is two arguments, memory and offset (a value). The
/// data of local memory are null.
template <class Set>
void for_each_argument(std::span<const Argument> arguments, Set&& set) {
    unsigned index = 0;
    for (const Argument& argument : arguments) {
        if (argument.kind() == Argument::Kind::buffer) {
            const BufferArgument& buffer = argument.buffer();
            const Block& block = block_of(buffer.buffer);
            const cl_mem memory = block.memory();
            const cl_long offset = static_cast<cl_long>(block.offset / buffer.element_size) + buffer.offset;
            set(index++, Argument::Kind::buffer, sizeof memory, static_cast<const void*>(&memory));
            set(index++, Argument::Kind::value, sizeof offset, static_cast<const void*>(&offset));
        } else {
            set(index++, argument.kind(), argument.size(),
                argument.kind() == Argument::Kind::local ? nullptr : argument.data());
        }
    }
}

/// The type of argument `index` of a kernel, as "a long (8 bytes)"; empty if the driver does not report it.
std::string argument_type(cl_kernel kernel, unsigned index);

inline void set_argument(const KernelState& kernel, cl_kernel of, const std::string& device, unsigned index,
                         std::size_t size, const void* data) {
    const cl_int status = clSetKernelArg(of, index, size, data);
    if (status == CL_SUCCESS) return;
    if (status != CL_INVALID_ARG_SIZE)
        throw_status(status, fmt::format("argument {} of kernel '{}'", index, kernel.name), device);
    const std::string expected = argument_type(of, index);
    throw_status(status,
                 fmt::format("launch of '{}': expected argument {} to be {}, got {} bytes", kernel.name, index,
                             expected.empty() ? "of the size that it has in the kernel" : expected, size),
                 device);
}

}  // namespace declivity::detail
