// Layer 1, private. The devices of this process.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include <declivity/runtime/device.hpp>

#include "opencl.hpp"

namespace declivity::detail {

class Registry {
  public:
    struct RegisteredDevice {
        cl_device_id device;  // a root device, which is not reference-counted
        DeviceInfo info;
        DeviceState* state;  // created on first use
    };
    static Registry& instance();
    /// Enumerates the platforms in the first call; the list never changes afterwards.
    const std::vector<RegisteredDevice>& devices();
    DeviceState& state(std::size_t index);

  private:
    std::mutex mutex_;
    bool searched_ = false;
    std::vector<RegisteredDevice> devices_;
};

}  // namespace declivity::detail
