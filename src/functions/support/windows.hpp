// Layer 5, private. Sliding windows along an axis, as elements.
#pragma once

#include <cstdint>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// i step + k spacing for windows i and their elements k: (windows, size), i64.
Tensor window_indices(std::int64_t windows, std::int64_t step, std::int64_t size, std::int64_t spacing,
                      const Device& device);

/// Sliding windows of an axis, which becomes the axis of windows; a new last axis has their elements, `spacing` apart.
/// A view of x, in which an element may appear in several windows.
Tensor sliding_windows(const Tensor& x, int axis, std::int64_t size, std::int64_t step, std::int64_t spacing = 1);

/// Adjoint of sliding_windows: the overlap-add of windows (the last axis) along an axis of this length.
Tensor sum_of_windows(const Tensor& x, int axis, std::int64_t length, std::int64_t step, std::int64_t spacing = 1);

}  // namespace declivity::detail
