// What a device can do at most.
#pragma once

#include "report.hpp"

namespace declivity::bench {

Ceilings measure_ceilings(const Device& device);

}  // namespace declivity::bench
