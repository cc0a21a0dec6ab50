// Layer 2, private. Numbers of kernels' arguments, work-groups of a size that is compiled in, and local memory as an
// argument.
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

/// Sizes that the caller knows to be below 2^31: division by them is cheaper for the kernel.
constexpr std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// A kernel and the work-items of its groups, with which it was compiled.
struct GroupKernel {
    Kernel kernel;
    std::size_t group;
};

/// make(group) for groups of `wanted` work-items, a power of 2, or the most below that with which the device runs what
/// it compiled.
template <class Make>
GroupKernel kernel_of_group(const Device& device, std::size_t wanted, const Make& make) {
    std::size_t group = std::min(wanted, std::bit_floor(device.info().max_work_group));
    for (;;) {
        Kernel kernel = make(group);
        const std::size_t most = std::bit_floor(std::max<std::size_t>(1, kernel.max_work_group()));
        if (most >= group) return {std::move(kernel), group};
        group = most;
    }
}

/// Elements of local memory that a work-group may take: those of `bytes`, or what the device has beside a little for
/// the driver.
inline std::int64_t block_elements(const Device& device, DType dtype, std::int64_t bytes) {
    return std::min<std::int64_t>(bytes, static_cast<std::int64_t>(device.info().local_memory) - 1024) /
           static_cast<std::int64_t>(size_of(dtype));
}

inline LocalMemory local_memory(std::int64_t elements, DType dtype) {
    return {static_cast<std::size_t>(elements) * size_of(dtype)};
}

}  // namespace declivity::ops
