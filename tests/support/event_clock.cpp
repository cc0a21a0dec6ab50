#include "tests/support/event_clock.hpp"

#include <declivity/runtime/driver_faults.hpp>

#include "tests/support/devices.hpp"
#include "tests/support/skip.hpp"

namespace declivity::test {

bool has_event_clock() {
    static const bool has = !has_fault(device(), driver_fault("idle_event_clock"));
    static const bool reported = [] {
        if (!has) skip("what commands take: the driver's clock stands still");
        return true;
    }();
    return has && reported;
}

}  // namespace declivity::test
