// Devices of a test's own, and environment variables for the time of a test.
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
/// A second Device over the same hardware and context, with queues, memory pool and compiled programs of its own. It
/// reads the environment anew (DECLIVITY_POOL, DECLIVITY_MEMORY_LIMIT, DECLIVITY_FAMILY).
Device fresh_device();

/// A raw queue, as a program that does not know the library makes one; release it. Null when the device refuses.
cl_command_queue make_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties);

/// Sets an environment variable, or removes it, and puts the old value back at the end.
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

/// f32, and f64 where the device has it; says once where it has not.
std::vector<DType> floats();
/// f64 where the device has it, else f32.
DType widest();
/// The families whose kernels can run here: both, but on a CPU whose driver wants kernels for GPUs (Mesa's llvmpipe)
/// these alone. Such a driver need not stand those for CPUs (DriverFault "indexed_struct_argument"), and never gets
/// them. Says once where that is so.
std::vector<KernelStyle> families();
/// Whether families() has it.
bool has_family(KernelStyle style);

/// True on Oclgrind's simulated device.
bool on_oclgrind();

}  // namespace declivity::test
