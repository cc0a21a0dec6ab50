// Whether the driver measures what commands take.
#pragma once

namespace declivity::test {

/// False where the driver's clock stands still (DriverFault "idle_event_clock"); says so once.
bool has_event_clock();

}  // namespace declivity::test
