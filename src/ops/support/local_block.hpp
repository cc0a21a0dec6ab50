// Layer 2, private. Helpers for 32-bit kernel arguments, work-groups of compile-time size, and local memory arguments.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// Narrows a size known to be below 2^31: 32-bit division is cheaper in kernels.
constexpr std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// A kernel and the work-group size that it was compiled with.
struct GroupKernel {
    Kernel kernel;
    std::size_t group;
};

/// Returns make(group) for groups of `max_group` work-items, a power of 2, or of the largest smaller power of 2 that
/// the device supports for the compiled kernel.
template <class Make>
GroupKernel kernel_of_group(const Device& device, std::size_t max_group, const Make& make) {
    std::size_t group = std::min(max_group, std::bit_floor(device.info().max_work_group));
    for (;;) {
        Kernel kernel = make(group);
        const std::size_t group_limit = std::bit_floor(std::max<std::size_t>(1, kernel.max_work_group()));
        if (group_limit >= group) return {std::move(kernel), group};
        group = group_limit;
    }
}

/// Number of elements of local memory that a work-group may use: at most `bytes`, and at most the device's local memory
/// as far as kernels can use it.
inline std::int64_t block_elements(const Device& device, DType dtype, std::int64_t bytes) {
    return std::min<std::int64_t>(bytes, static_cast<std::int64_t>(device.traits().local_memory)) /
           static_cast<std::int64_t>(size_of(dtype));
}

inline LocalMemory local_memory(std::int64_t elements, DType dtype) {
    return {static_cast<std::size_t>(elements) * size_of(dtype)};
}

}  // namespace declivity::ops
