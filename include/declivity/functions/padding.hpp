// Layer 5. Padding by a constant or by elements of the tensor.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_padding Padding
/// @ingroup functions
/// Padding of x of any type and number of axes by a constant or by its elements; the result has the type of x.
/// @{

/// Padding modes: a constant; reflect, the elements mirrored at the edge element (a b c becomes c b [a b c] b a);
/// replicate, the edge element repeated (a a [a b c] c c); circular, the elements of the other end (b c [a b c] a b).
enum class PadMode : std::uint8_t { constant, reflect, replicate, circular, zeros = constant };

constexpr std::string_view name_of(PadMode mode) noexcept {
    constexpr std::string_view names[] = {"constant", "reflect", "replicate", "circular"};
    return names[static_cast<std::size_t>(mode)];
}

/// Pads the last axes of x: pads {left, right, top, bottom, ...}, a pair for each axis, the last axis first, as
/// torch.nn.functional.pad. Negative numbers crop, before anything is added. Mode reflect adds fewer elements than the
/// axis has, circular at most as many.
/// Examples: for x = `[[1, 2, 3]]`, `pad(x, {1, 2})` is `[[0, 1, 2, 3, 0, 0]]`; `pad(x, {2, 1}, PadMode::reflect)` is
/// `[[3, 2, 1, 2, 3, 2]]`; `pad(x, {0, 2}, PadMode::circular)` is `[[1, 2, 3, 1, 2]]`; `pad(x, {-1, 0})` is `[[2, 3]]`.
/// @param value of PadMode::constant
/// @throws ShapeError for more pairs than axes, or too few elements
DECLIVITY_API Tensor pad(const Tensor& x, const std::vector<std::int64_t>& pads, PadMode mode = PadMode::constant,
                         Scalar value = 0);

/// @}

}  // namespace declivity
