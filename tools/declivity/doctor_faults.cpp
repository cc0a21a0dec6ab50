// Known driver faults, and which of them this driver has.
#include <string>

#include <declivity/runtime/driver_faults.hpp>
#include <fmt/format.h>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {

void examine_faults(DoctorRun& e) {
    const Device device = e.device();
    const bool off = workarounds_off();
    for (const DriverFault& fault : driver_faults()) {
        std::string has = fmt::format("this driver has this fault: {}. ", fault.what);
        if (fault.avoided.empty()) has += "The library cannot avoid it";
        else
            has += fmt::format(
                "{}: {}", off ? "DECLIVITY_WORKAROUNDS=0 disables the library's workaround" : "The library avoids it",
                fault.avoided);
        const auto has_fault_text = [&] { return has_fault(device, fault) ? has : std::string(); };
        const std::string at_end = fault.may_crash ? has : "";
        if (off || fault.avoided.empty()) e.check(std::string(fault.name), has_fault_text, at_end);
        else e.check_unused(std::string(fault.name), has_fault_text, at_end);
    }
}

}  // namespace declivity::tools::doctor
