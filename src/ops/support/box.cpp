#include "box.hpp"

namespace declivity::ops {

std::optional<Box> box_of(const View& whole, const View& part) {
    if (!(whole.buffer == part.buffer) || !whole.dense() || part.offset < whole.offset) return std::nullopt;
    Box box{.start = Dims::filled(whole.rank(), 0), .size = Dims::filled(whole.rank(), 1)};
    std::int64_t left = part.offset - whole.offset;
    const Strides strides = dense_strides(whole.shape);
    for (int axis = 0; axis < whole.rank(); ++axis) {
        if (whole.shape[axis] <= 1) continue;
        box.start[axis] = left / strides[axis];
        left -= box.start[axis] * strides[axis];
    }
    // Axes are matched by their strides; an axis dropped by select() has one element.
    for (int i = 0; i < part.rank(); ++i) {
        if (part.shape[i] == 1) continue;
        int axis = 0;
        while (axis < whole.rank() && (whole.shape[axis] <= 1 || strides[axis] != part.strides[i])) ++axis;
        if (axis == whole.rank() || box.size[axis] != 1) return std::nullopt;
        box.size[axis] = part.shape[i];
    }
    for (int axis = 0; axis < whole.rank(); ++axis)
        if (box.start[axis] + box.size[axis] > whole.shape[axis]) return std::nullopt;
    return box;
}

bool overlap(const Box& a, const Box& b) {
    for (int axis = 0; axis < a.start.rank(); ++axis)
        if (a.start[axis] + a.size[axis] <= b.start[axis] || b.start[axis] + b.size[axis] <= a.start[axis])
            return false;
    return true;
}

}  // namespace declivity::ops
