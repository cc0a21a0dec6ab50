// Layer 1. Known faults of OpenCL drivers, for which the library has workarounds. Each is detected by a small kernel,
// never inferred from a name.
#pragma once

#include <span>
#include <string_view>

#include <declivity/runtime/device.hpp>

namespace declivity {

/// @addtogroup runtime
/// @{

/// A driver fault.
struct DriverFault {
    std::string_view name;     ///< "wide_work_item_ids"
    std::string_view what;     ///< description, in a sentence
    std::string_view seen;     ///< drivers where it was observed
    std::string_view avoided;  ///< the workaround, applied on all drivers; empty: none
    bool may_crash = false;    ///< testing an affected driver terminates the process
};

/// All known driver faults.
DECLIVITY_API std::span<const DriverFault> driver_faults();

/// The fault of the given name. @throws ValueError if there is none
DECLIVITY_API const DriverFault& driver_fault(std::string_view name);

/// Returns whether a device has the fault: runs the kernel that shows it on a separate queue, outside of capture and of
/// any Profiler.
/// @throws DeviceError if the kernel cannot be built or run for another reason
DECLIVITY_API bool has_fault(const Device& device, const DriverFault& fault);

/// @}

}  // namespace declivity
