// Layer 2, private. Before which functions a value of f16 or bf16 that was not stored is rounded to its type.
#pragma once

#include <declivity/ops/function.hpp>

namespace declivity::ops {

/// Whether the function has neither jumps nor bounds behind which it is NaN or infinite: from values that differ in the
/// last digit it gives values that differ by as little.
bool is_continuous(Function function);

/// The same of the gradient with respect to input `input`, as the table writes it, in the inputs and the result.
bool is_continuous_gradient(Function function, int input);

}  // namespace declivity::ops
