// The library's version.
#pragma once

#include <string_view>

namespace declivity {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace declivity
