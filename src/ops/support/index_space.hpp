// Layer 2, private. Reduces the index space of a strided kernel to as few axes as possible.
#pragma once

#include <array>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Sizes, and the strides of each operand.
struct IndexSpace {
    Shape sizes;
    std::vector<Strides> strides;
};

/// Drops axes of size 1 and merges adjacent axes that are contiguous in every operand. A space of one element keeps one
/// axis, of size 1 and stride 0.
IndexSpace merge_axes(IndexSpace space);

/// Sizes or strides in the form of a kernel's `long name[8]`.
using AxisArray = std::array<std::int64_t, Dims::kMaxRank>;
AxisArray axis_array(const Dims& dims);

}  // namespace declivity::ops
