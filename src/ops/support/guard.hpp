// Layer 2, private. Checks the guard of a kernel: a buffer whose values decide whether it has any effect.
#pragma once

#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::ops {

/// @throws TypeError, ShapeError, DeviceError unless `guard` is a dense i32 [2] on the device of `reference`
inline void require_guard(std::string_view function, const View& guard, const View& reference) {
    require_shape(function, "guard", guard, {2});
    require_dense(function, "guard", guard);
    require_same_device(function, reference, guard);
    if (guard.dtype != DType::i32)
        throw TypeError(fmt::format("{}: expected a guard of i32, got {}", function, name_of(guard.dtype)));
}

}  // namespace declivity::ops
