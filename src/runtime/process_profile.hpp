// Layer 1, private. DECLIVITY_PROFILE: all that the process does on its devices, in one trace.
#pragma once

namespace declivity::detail {

class DeviceState;

/// Profiles a new device until the process ends, if DECLIVITY_PROFILE asks for it.
void profile_process(DeviceState& device) noexcept;

}  // namespace declivity::detail
