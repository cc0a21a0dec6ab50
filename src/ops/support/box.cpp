#include "box.hpp"

namespace declivity::ops {

std::optional<Box> box_of(const View& parent, const View& part) {
    if (!(parent.buffer == part.buffer) || !parent.dense() || part.offset < parent.offset) return std::nullopt;
    Box box{.start = Dims::filled(parent.rank(), 0), .size = Dims::filled(parent.rank(), 1)};
    std::int64_t left = part.offset - parent.offset;
    const Strides strides = dense_strides(parent.shape);
    for (int axis = 0; axis < parent.rank(); ++axis) {
        if (parent.shape[axis] <= 1) continue;
        box.start[axis] = left / strides[axis];
        left -= box.start[axis] * strides[axis];
    }
    // Axes are matched by their strides; an axis dropped by select() has one element.
    for (int i = 0; i < part.rank(); ++i) {
        if (part.shape[i] == 1) continue;
        int axis = 0;
        while (axis < parent.rank() && (parent.shape[axis] <= 1 || strides[axis] != part.strides[i])) ++axis;
        if (axis == parent.rank() || box.size[axis] != 1) return std::nullopt;
        box.size[axis] = part.shape[i];
    }
    for (int axis = 0; axis < parent.rank(); ++axis)
        if (box.start[axis] + box.size[axis] > parent.shape[axis]) return std::nullopt;
    return box;
}

bool overlap(const Box& a, const Box& b) {
    for (int axis = 0; axis < a.start.rank(); ++axis)
        if (a.start[axis] + a.size[axis] <= b.start[axis] || b.start[axis] + b.size[axis] <= a.start[axis])
            return false;
    return true;
}

}  // namespace declivity::ops
