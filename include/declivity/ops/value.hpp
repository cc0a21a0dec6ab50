// Layer 2. Deprecated name of <declivity/ops/lazy_array.hpp>, for version 0.1.
#pragma once

#include <declivity/ops/lazy_array.hpp>  // IWYU pragma: export
