// Layer 7, private. Aliases of the library's JSON reader for this folder.
#pragma once

#include "runtime/json.hpp"

namespace declivity::text {

using detail::Json;
using detail::JsonValue;

}  // namespace declivity::text
