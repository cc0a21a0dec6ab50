// Floor 2, private. Numbers of kernels' arguments, and local memory as an argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// Sizes that the caller knows to be below 2^31: division by them is cheaper for the kernel.
constexpr std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// Elements of local memory that a work-group may take: those of `bytes`, or what the device has beside a little for the driver.
inline std::int64_t block_elements(const Device& device, DType dtype, std::int64_t bytes) {
    return std::min<std::int64_t>(bytes, static_cast<std::int64_t>(device.info().local_memory) - 1024) / static_cast<std::int64_t>(size_of(dtype));
}

inline LocalMemory local_memory(std::int64_t elements, DType dtype) { return {static_cast<std::size_t>(elements) * size_of(dtype)}; }

}  // namespace declivity::ops
