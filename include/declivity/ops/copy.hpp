// Layer 2. Copying and filling of views.
#pragma once

#include <string_view>

#include <declivity/ops/scalar.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Copies elements between views of any strides, which may overlap.
/// @throws ShapeError, TypeError, DeviceError unless both are of one shape, type and device
DECLIVITY_API void copy(const View& from, const View& to);
/// Returns `view` itself if it is dense, otherwise a dense copy.
DECLIVITY_API View dense_copy_if_needed(const View& view);
/// Sets every element of a view of any strides to a number.
/// @throws ValueError naming `function` when an integer type cannot represent it
DECLIVITY_API void fill(const View& view, Scalar value, std::string_view function = "fill");

/// @}

}  // namespace declivity::ops
