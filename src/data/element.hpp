// Layer 5, private. Numbers of any type on the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <declivity/ops/dtype.hpp>

namespace declivity::data {

/// The bytes of one element of this type. @throws ValueError when the type does not have the number
std::vector<std::byte> element_of(DType dtype, double value);
/// Elements of this type as floats, and back: integers rounded to the nearest that the type has.
/// @throws TypeError for f16 and bf16, naming `function`
void to_floats(const char* function, DType dtype, std::span<const std::byte> from, std::span<float> to);
void from_floats(const char* function, DType dtype, std::span<const float> from, std::span<std::byte> to);

}  // namespace declivity::data
