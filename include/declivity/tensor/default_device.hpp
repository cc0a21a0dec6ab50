// Layer 3. The default device of a thread, for a while.
#pragma once

#include <declivity/runtime/device.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// While one lives, default_device() of this thread is another one; other threads keep theirs. Scopes nest, and end in
/// the reverse order.
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

}  // namespace declivity
