// Layer 5, private. The library's JSON reader under the names of this folder.
#pragma once

#include "runtime/json.hpp"

namespace declivity::text {

using detail::Json;
using detail::JsonValue;

}  // namespace declivity::text
