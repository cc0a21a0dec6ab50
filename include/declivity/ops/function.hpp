// Layer 2. Enumeration of the elementwise functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// One enumerator for each row of elementwise_table.def, which defines what it computes.
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

/// @}

}  // namespace declivity::ops
