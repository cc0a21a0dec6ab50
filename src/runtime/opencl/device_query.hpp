// Layer 1, private. The platforms and devices of this machine, and their properties.
#pragma once

#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>

#include "opencl.hpp"

namespace declivity::detail {

// All of them throw cl::Error after a lack of resources: the next call may succeed.

std::vector<cl_platform_id> platforms();
/// A platform without devices (a driver without its card) has none.
std::vector<cl_device_id> devices_of(cl_platform_id platform);
DeviceInfo describe(cl_platform_id platform, cl_device_id device, std::string id);

}  // namespace declivity::detail
