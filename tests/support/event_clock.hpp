// Detects drivers that do not measure execution times.
#pragma once

namespace declivity::test {

/// False if the driver's clock does not advance (DriverFault "idle_event_clock"); reports it once.
bool has_event_clock();

}  // namespace declivity::test
