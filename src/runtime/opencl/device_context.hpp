// Layer 1, private. What all objects of a device need: its OpenCL handles and its properties.
#pragma once

#include <declivity/runtime/device.hpp>

#include "opencl.hpp"
#include "runtime/access.hpp"

namespace declivity::detail {

struct DeviceContext {
    DeviceState& owner;
    cl_device_id device;
    cl::Context context;
    DeviceInfo info;
    DeviceTraits traits;

    [[nodiscard]] Device handle() const { return device_of(owner); }
};

}  // namespace declivity::detail
