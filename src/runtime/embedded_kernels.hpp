// Layer 1, private. The kernel files that the build put into the library (cmake/EmbedKernels.cmake).
#pragma once

#include <span>
#include <string_view>

namespace declivity::detail {

struct EmbeddedKernel {
    std::string_view name;    ///< file name, such as "softmax.cl" or "math.clh": no two files have the same
    std::string_view path;    ///< below cl_kernels/, such as "lib/math.clh"
    std::string_view source;  ///< its text, byte for byte
};

/// All files of cl_kernels/ and its folders, sorted by path.
std::span<const EmbeddedKernel> embedded_kernels();

}  // namespace declivity::detail
