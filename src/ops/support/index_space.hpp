// Layer 2, private. The index space of a strided kernel, in as few axes as possible.
#pragma once

#include <array>
#include <vector>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Sizes, and for each operand the strides over them.
struct IndexSpace {
    Shape sizes;
    std::vector<Strides> strides;
};

/// Drops axes of size 1 and merges neighbours that every operand walks through without a jump. A space of one element
/// keeps one axis, of size 1 and stride 0.
IndexSpace merge_axes(IndexSpace space);

/// Sizes or strides as a kernel's `long name[8]`.
using AxisArray = std::array<std::int64_t, Dims::kMaxRank>;
AxisArray axis_array(const Dims& dims);

}  // namespace declivity::ops
