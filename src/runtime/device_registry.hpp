// Layer 1, private. All devices of this process.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include <declivity/runtime/device.hpp>

#include "opencl.hpp"

namespace declivity::detail {

class Registry {
  public:
    struct Found {
        cl_device_id device;  // a root device, which is not counted
        DeviceInfo info;
        DeviceState* state;  // made on first use
    };
    static Registry& instance();
    /// Looks for platforms at the first call; the list never changes afterwards.
    const std::vector<Found>& devices();
    DeviceState& state(std::size_t index);

  private:
    std::mutex mutex_;
    bool searched_ = false;
    std::vector<Found> found_;
};

}  // namespace declivity::detail
