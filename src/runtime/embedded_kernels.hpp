// Floor 1, private. The kernel files that the build put into the library (cmake/EmbedKernels.cmake).
#pragma once

#include <span>
#include <string_view>

namespace declivity::detail {

struct EmbeddedKernel {
    std::string_view name;    ///< file name, such as "conv2d.cl" or "common.clh"
    std::string_view source;  ///< its text, byte for byte
};

/// All files of cl_kernels/, sorted by name.
std::span<const EmbeddedKernel> embedded_kernels();

}  // namespace declivity::detail
