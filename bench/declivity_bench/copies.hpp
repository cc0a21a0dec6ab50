// The fastest copy that a device can do: what bandwidth-bound operators are held against.
#pragma once

#include <declivity/runtime/device.hpp>

#include "measure.hpp"

namespace declivity::bench {

/// Reads `bytes` / 2 and writes as many, from and to memory that no cache holds, in the fastest of several ways: a copy
/// of buffers, an elementwise kernel, ops::copy and, on a CPU, memcpy by a thread for each of its cores.
Contender copy_of(const Device& device, double bytes);

}  // namespace declivity::bench
