// Layer 2, private. Checks of the operands of functions that take indices or numbers of rows.
#pragma once

#include <string_view>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::ops {

/// @throws TypeError, naming `function` and `name`, unless of i32 or i64; ShapeError unless dense
inline void require_indices(std::string_view function, std::string_view name, const View& indices) {
    require_dense(function, name, indices);
    if (indices.dtype != DType::i32 && indices.dtype != DType::i64)
        throw TypeError(fmt::format("{}: expected {} of type i32 or i64, got {}", function, name,
                                    declivity::name_of(indices.dtype)));
}

/// @throws ShapeError unless dense, DeviceError unless on the device of the indices
inline void require_elements(std::string_view function, std::string_view name, const View& x, const View& indices) {
    require_dense(function, name, x);
    require_same_device(function, x, indices);
}

}  // namespace declivity::ops
