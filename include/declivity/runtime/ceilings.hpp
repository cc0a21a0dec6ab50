// Layer 1. What a device does at most, measured.
#pragma once

#include <declivity/runtime/device.hpp>

namespace declivity {

/// Rates that plain kernels reach; 0: not known, or not possible.
struct Ceilings {
    double flops_f32 = 0;  ///< 1/s, of multiply-adds of vectors in registers, each two
    double flops_f64 = 0;
    double bytes = 0;  ///< 1/s read and written by a copy that is larger than caches
};

/// Runs a few short kernels, less than a second on most devices, which no Profiler shows. The best of several runs
/// counts, so work of others on the device makes them too low, never too high.
/// @throws OutOfMemory where not even 2 MiB are free
DECLIVITY_API Ceilings measure_ceilings(const Device& device);

}  // namespace declivity
