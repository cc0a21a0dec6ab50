// Layer 2, private. Views as boxes of a dense tensor.
#pragma once

#include <optional>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// A box in a dense view: from `start`, `size` elements along each axis.
struct Box {
    Dims start, size;
};

/// Returns the box of a view; empty if it is none: it has steps, or its axes are in an order that strides do not
/// determine.
std::optional<Box> box_of(const View& parent, const View& part);

bool overlap(const Box& a, const Box& b);

}  // namespace declivity::ops
