// Layer 1, private. The kernel files embedded in the library by the build (cmake/EmbedKernels.cmake).
#pragma once

#include <span>
#include <string_view>

namespace declivity::detail {

struct EmbeddedKernel {
    std::string_view name;    ///< file name, such as "softmax.cl" or "math.clh"; unique
    std::string_view path;    ///< below cl_kernels/, such as "lib/math.clh"
    std::string_view source;  ///< the text, byte for byte
};

/// All files below cl_kernels/, sorted by path.
std::span<const EmbeddedKernel> embedded_kernels();

}  // namespace declivity::detail
