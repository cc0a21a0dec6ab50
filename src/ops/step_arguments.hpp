// Floor 2, private. What the optimizers' steps are given beside the tensors.
#pragma once

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::ops {

/// @throws TypeError, ShapeError, DeviceError unless `guard` is a dense i32 [2] where `beside` lives
inline void require_guard(std::string_view function, const View& guard, const View& beside) {
    require_shape(function, "guard", guard, {2});
    require_dense(function, "guard", guard);
    require_same_device(function, beside, guard);
    if (guard.dtype != DType::i32)
        throw TypeError(fmt::format("{}: wants a guard of i32, got {}", function, name_of(guard.dtype)));
}

inline void require_same_device(std::string_view function, const Device& device, const View& beside) {
    if (!(device == beside.device()))
        throw DeviceError(fmt::format("{}: wants all tensors on one device, got '{}' and '{}'", function, device.name(),
                                      beside.device().name()));
}

/// @throws ValueError, TypeError, ShapeError, DeviceError unless tensors, progress and guard are what a step wants
inline void require_step(std::string_view function, const MultiTensor& tensors, std::size_t roles, const View& progress,
                         const View& guard) {
    if (tensors.roles() != roles)
        throw ValueError(fmt::format("{}: wants {} roles of tensors, got {}", function, roles, tensors.roles()));
    require_same_device(function, tensors.device(), progress);
    require_shape(function, "progress", progress, {2});
    require_dense(function, "progress", progress);
    if (progress.dtype != tensors.dtype())
        throw TypeError(fmt::format("{}: wants progress of the tensors' type {}, got {}", function,
                                    name_of(tensors.dtype()), name_of(progress.dtype)));
    require_guard(function, guard, progress);
}

/// @throws ValueError unless the number lies in [0, 1)
inline void require_decay(std::string_view function, std::string_view name, double value) {
    if (!(value >= 0 && value < 1))
        throw ValueError(fmt::format("{}: wants {} in [0, 1), got {}", function, name, value));
}

}  // namespace declivity::ops
