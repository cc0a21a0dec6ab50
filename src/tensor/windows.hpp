// Layer 3, private. Windows that slide along an axis, as elements.
#pragma once

#include <cstdint>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// i step + k spacing for windows i and their elements k: (windows, size), i64.
Tensor window_places(std::int64_t windows, std::int64_t step, std::int64_t size, std::int64_t spacing,
                     const Device& device);

/// The windows of an axis, which counts them then; a new last axis has their elements, `spacing` apart. It shares x's
/// memory, each element of which may stand in several windows.
Tensor sliding_windows(const Tensor& x, int axis, std::int64_t size, std::int64_t step, std::int64_t spacing = 1);

/// The reverse: the sum of windows (the last axis) at their places along an axis of this length.
Tensor sum_of_windows(const Tensor& x, int axis, std::int64_t length, std::int64_t step, std::int64_t spacing = 1);

}  // namespace declivity::detail
