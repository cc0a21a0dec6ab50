// Layer 1. Faults of OpenCL drivers that the library knows and keeps clear of. Each is shown by a small kernel, never
// inferred from a name.
#pragma once

#include <span>
#include <string_view>

#include <declivity/runtime/device.hpp>

namespace declivity {

/// A fault that some driver has.
struct DriverFault {
    std::string_view name;     ///< "wide_work_item_ids"
    std::string_view what;     ///< what goes wrong, in a sentence
    std::string_view seen;     ///< where it was seen
    std::string_view avoided;  ///< what the library does about it, on all drivers; empty: nothing
    bool may_crash = false;    ///< where a driver has it, asking ends the process
};

/// All that are known.
DECLIVITY_API std::span<const DriverFault> driver_faults();

/// The one of this name. @throws ValueError when there is none
DECLIVITY_API const DriverFault& driver_fault(std::string_view name);

/// Whether a device has it: runs the kernel that shows it, on a queue of its own, which nothing records and no Profiler
/// shows.
/// @throws DeviceError when the kernel can't be built or run for another reason
DECLIVITY_API bool has_fault(const Device& device, const DriverFault& fault);

}  // namespace declivity
