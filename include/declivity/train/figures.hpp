// Layer 5. Deprecated name of <declivity/train/epoch_metrics.hpp>, for version 0.1.
#pragma once

#include <declivity/train/epoch_metrics.hpp>  // IWYU pragma: export
