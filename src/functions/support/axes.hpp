// Layer 5, private. Axes and shapes that functions of several families compute alike.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// Returns whether x is a scalar and `axis` its only possible axis, which PyTorch accepts as 0 and -1.
inline bool is_axis_of_scalar(const Tensor& x, std::int64_t axis) { return x.rank() == 0 && (axis == 0 || axis == -1); }

/// normalize_axis(), with scalars as tensors of one axis.
/// @throws ShapeError naming `function` if out of range
inline int normalize_axis_of(std::string_view function, const Tensor& x, std::int64_t axis) {
    return is_axis_of_scalar(x, axis) ? 0 : normalize_axis(function, axis, x.rank());
}

inline Shape append_dims(Shape leading, std::initializer_list<std::int64_t> last) {
    for (const std::int64_t size : last) leading.push_back(size);
    return leading;
}

}  // namespace declivity::detail
