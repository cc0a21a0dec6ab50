// Layer 5. Deprecated name of <declivity/data/synthetic_digits.hpp>, for version 0.1.
#pragma once

#include <declivity/data/synthetic_digits.hpp>  // IWYU pragma: export
