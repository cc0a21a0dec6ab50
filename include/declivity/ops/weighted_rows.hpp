// Layer 2. Deprecated name of <declivity/ops/gather_weighted_sum.hpp>, for version 0.1.
#pragma once

#include <declivity/ops/gather_weighted_sum.hpp>  // IWYU pragma: export
