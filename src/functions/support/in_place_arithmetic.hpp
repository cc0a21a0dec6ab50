// Layer 5, private. Checks of x += y and its like, whose result must fit the type of x.
#pragma once

#include <string_view>

#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// @throws TypeError if the result type of `function` does not fit the tensor's type: a fraction into an i32
void require_fits_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other);
/// @throws TypeError for integers and bools, whose quotients are floating point
void require_divisible(std::string_view function, const Tensor& to);

/// New value of a part after +=, -=, *= or /=.
Tensor updated_part(const Tensor& part, ops::Function function, const char* name, const TensorOrScalar& value);

}  // namespace declivity::detail
