// Faults of drivers that the library knows, and which of them this one has.
#include <string>

#include <declivity/runtime/driver_faults.hpp>
#include <fmt/format.h>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {

void examine_faults(Examination& e) {
    const Device device = e.device();
    const bool off = workarounds_off();
    for (const DriverFault& fault : driver_faults()) {
        const auto found = [&] {
            if (!has_fault(device, fault)) return std::string();
            const std::string has = fmt::format("this driver has it: {}.", fault.what);
            if (fault.avoided.empty()) return has + " The library cannot avoid it";
            return fmt::format("{} {}: {}", has, off ? "DECLIVITY_WORKAROUNDS=0 takes back what the library does about it" : "The library avoids it", fault.avoided);
        };
        if (off || fault.avoided.empty()) e.check(std::string(fault.name), found);
        else e.check_unused(std::string(fault.name), found);
    }
}

}  // namespace declivity::tools::doctor
