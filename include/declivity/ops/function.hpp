// Layer 2. The elementwise functions by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace declivity::ops {

/// One row each in elementwise_table.def, which says what they compute.
enum class Function : std::uint8_t {
#define DECLIVITY_FUNCTION(name, ...) name,
#include <declivity/ops/elementwise_table.def>
#undef DECLIVITY_FUNCTION
};
inline constexpr std::size_t kFunctionCount = 0
#define DECLIVITY_FUNCTION(...) +1
#include <declivity/ops/elementwise_table.def>
#undef DECLIVITY_FUNCTION
    ;

}  // namespace declivity::ops
