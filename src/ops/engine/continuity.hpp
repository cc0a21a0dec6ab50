// Layer 2, private. Lists the functions before which an f16 or bf16 value that was not stored must be rounded to its
// type.
#pragma once

#include <declivity/ops/function.hpp>

namespace declivity::ops {

/// Returns whether the function has no jumps and no finite limits of its domain: a change of the input in the last
/// digit changes the result by a similar amount.
bool is_continuous(Function function);

/// The same for the gradient with respect to input `input` as given in the table, a function of the inputs and the
/// result.
bool is_continuous_gradient(Function function, int input);

}  // namespace declivity::ops
