// Layer 1, private. DECLIVITY_PROFILE: one trace of all commands of the process.
#pragma once

namespace declivity::detail {

class DeviceState;

/// Profiles a new device until the process ends if DECLIVITY_PROFILE is set.
void profile_process(DeviceState& device) noexcept;

}  // namespace declivity::detail
