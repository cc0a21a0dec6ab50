// Separate devices and temporary environment variables for tests.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/interop.hpp>

namespace declivity::test {

/// The device that tests run on: Device::best().
Device device();
/// A second Device over the same hardware and context, with its own queues, memory pool and compiled programs. It
/// reads the environment again (DECLIVITY_POOL, DECLIVITY_MEMORY_LIMIT, DECLIVITY_KERNEL_STYLE).
Device fresh_device();

/// A raw queue, as created by a program that does not use the library; the caller releases it. Null if the device
/// refuses.
cl_command_queue make_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties);

/// Sets or removes an environment variable, and restores the old value in the destructor.
class Environment {
  public:
    Environment(std::string name, const std::optional<std::string>& value);
    ~Environment();
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    std::string name_;
    std::optional<std::string> before_;
};

/// f32, and f64 if the device supports it; reports once if not.
std::vector<DType> floats();
/// f64 if the device supports it, else f32.
DType widest();
/// The kernel styles that can run here: both, except on a CPU whose driver needs simt kernels (Mesa's llvmpipe), where
/// it is simt only. Such a driver may fail with simd kernels (DriverFault "indexed_struct_argument") and never uses
/// them. Reports that case once.
std::vector<KernelStyle> kernel_styles();
/// Returns whether kernel_styles() contains it.
bool has_kernel_style(KernelStyle style);

/// True on Oclgrind's simulated device.
bool on_oclgrind();

}  // namespace declivity::test
