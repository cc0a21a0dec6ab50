// Layer 3. Padding: elements around a tensor, by a number or by what the tensor holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// What stands outside: a number, the elements mirrored at those of the edge (a b c becomes c b [a b c] b a), those of
/// the edge again and again (a a [a b c] c c), or those from the other end (b c [a b c] a b).
enum class PadMode : std::uint8_t { constant, reflect, replicate, circular, zeros = constant };

constexpr std::string_view name_of(PadMode mode) noexcept {
    constexpr std::string_view names[] = {"constant", "reflect", "replicate", "circular"};
    return names[static_cast<std::size_t>(mode)];
}

/// Elements around the last axes of x: pads {left, right, top, bottom, ...}, a pair for each axis, the last axis first,
/// as torch.nn.functional.pad. Negative numbers cut off as many elements, before anything is added. Mirrored are fewer
/// elements than an axis has, and come from the other end at most as many.
/// @param value what PadMode::constant puts there
/// @throws ShapeError for more pairs than axes, or where elements are missing
DECLIVITY_API Tensor pad(const Tensor& x, const std::vector<std::int64_t>& pads, PadMode mode = PadMode::constant,
                         Scalar value = 0);

}  // namespace declivity
