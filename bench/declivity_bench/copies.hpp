// The fastest copy on a device: the reference for bandwidth-bound operators.
#pragma once

#include <declivity/runtime/device.hpp>

#include "measure.hpp"

namespace declivity::bench {

/// Reads `bytes` / 2 and writes as many, from and to memory outside of the caches, by the fastest of: a buffer copy, an
/// elementwise kernel, ops::copy and, on a CPU, memcpy with one thread per core.
Contender copy_of(const Device& device, double bytes);

}  // namespace declivity::bench
