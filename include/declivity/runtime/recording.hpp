// Layer 1. Deprecated name of <declivity/runtime/command_list.hpp>, for version 0.1.
#pragma once

#include <declivity/runtime/command_list.hpp>  // IWYU pragma: export
