// Layer 3. Scoped default device of a thread.
#pragma once

#include <declivity/runtime/device.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

/// Overrides default_device() in this thread while it is alive; other threads keep theirs. Scopes nest, and end in
/// reverse order.
///
///     const DefaultDevice scope(Device::select("gpu"));
///     Tensor x = zeros({3, 4});  // on the GPU
class DECLIVITY_API DefaultDevice {
  public:
    explicit DefaultDevice(const Device& device);
    ~DefaultDevice();
    DefaultDevice(const DefaultDevice&) = delete;
    DefaultDevice& operator=(const DefaultDevice&) = delete;

  private:
    detail::DeviceState* before_;
};

/// @}

}  // namespace declivity
