// Layer 3. Sizes for the spatial axes of convolution and pooling.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include <declivity/ops/shape.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

/// Three numbers, for depth, height and width; one number stands for all: `{.padding = 1}`, `{.stride = {1, 2, 2}}`.
struct Size3 : std::array<std::int64_t, 3> {
    constexpr Size3(std::int64_t all) : array{all, all, all} {}  // NOLINT: implicit by design
    constexpr Size3(std::int64_t depth, std::int64_t height, std::int64_t width) : array{depth, height, width} {}
};

/// A number for each of N spatial axes.
template <int N>
using SpatialSize = std::conditional_t<N == 1, std::int64_t, std::conditional_t<N == 2, Size2, Size3>>;

/// Converts a number for one axis to a list.
inline Dims dims_of(std::int64_t size) { return {size}; }
/// Converts a pair to a list.
inline Dims dims_of(const Size2& sizes) { return {sizes[0], sizes[1]}; }
/// Converts three numbers to a list.
inline Dims dims_of(const Size3& sizes) { return {sizes[0], sizes[1], sizes[2]}; }

/// @}

}  // namespace declivity
