// Layer 7, private. Elements of any type on the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <declivity/ops/dtype.hpp>

namespace declivity::data {

/// Bytes of one element of this type. @throws ValueError if the type does not represent the number
std::vector<std::byte> element_of(DType dtype, double value);
/// Conversion of elements to and from floats: integers are rounded to the nearest value of the type.
/// @throws TypeError for f16 and bf16, naming `function`
void to_floats(const char* function, DType dtype, std::span<const std::byte> from, std::span<float> to);
void from_floats(const char* function, DType dtype, std::span<const float> from, std::span<std::byte> to);

}  // namespace declivity::data
