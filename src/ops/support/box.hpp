// Layer 2, private. Parts of a tensor as boxes.
#pragma once

#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Where a part of a dense view lies: from `start`, `size` elements along each of its axes.
struct Box {
    Dims start, size;
};

/// None for a part that is no box: taken with steps, or in another order of axes than strides tell.
std::optional<Box> box_of(const View& whole, const View& part);

bool overlap(const Box& a, const Box& b);

}  // namespace declivity::ops
