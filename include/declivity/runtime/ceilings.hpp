// Layer 1. Measured peak throughput of a device (roofline).
#pragma once

#include <declivity/runtime/device.hpp>

namespace declivity {

/// @addtogroup runtime
/// @{

/// Throughput reached by simple kernels; 0: unknown or unsupported.
struct Ceilings {
    double flops_f32 = 0;  ///< FLOP/s of vector multiply-adds in registers, each counted as two
    double flops_f64 = 0;
    double bytes = 0;  ///< B/s read and written by a copy that is larger than the caches
};

/// Runs a few short kernels, which takes less than a second on most devices and is not visible to a Profiler. Returns
/// the best of several runs, so other load on the device can make the results too low, never too high.
/// @throws OutOfMemory if 2 MiB cannot be allocated
DECLIVITY_API Ceilings measure_ceilings(const Device& device);

/// @}

}  // namespace declivity
