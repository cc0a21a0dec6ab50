// Layer 3. Deprecated name of <declivity/tensor/capture.hpp>, for version 0.1.
#pragma once

#include <declivity/tensor/capture.hpp>  // IWYU pragma: export
