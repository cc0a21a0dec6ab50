// Peak rates of a device.
#pragma once

#include "report.hpp"

namespace declivity::bench {

Ceilings measure_ceilings(const Device& device);

}  // namespace declivity::bench
