// Layer 5, private. Complex numbers as pairs of real and imaginary part.
#pragma once

#include <string_view>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/tensor.hpp>
#include <fmt/format.h>

namespace declivity::detail {

/// @throws ShapeError unless the last axis has size 2
inline void require_pairs(std::string_view function, std::string_view name, const Tensor& z) {
    if (z.rank() < 1 || z.size(-1) != 2)
        throw ShapeError(fmt::format("{}: expected {} of complex numbers, as pairs along a last axis of 2, got {}",
                                     function, name, z.shape().str()));
}

}  // namespace declivity::detail
