#include "index_space.hpp"

#include <algorithm>

namespace declivity::ops {

IndexSpace merge_axes(IndexSpace space) {
    int last = -1;  // number of merged axes, stored in place
    for (int axis = 0; axis < space.sizes.rank(); ++axis) {
        const std::int64_t size = space.sizes[axis];
        if (size == 1) continue;
        const bool joins = last >= 0 && std::ranges::all_of(space.strides, [&](const Strides& strides) {
                               return strides[last] == strides[axis] * size;
                           });
        if (joins) space.sizes[last] *= size;
        else space.sizes[++last] = size;
        for (Strides& strides : space.strides) strides[last] = strides[axis];
    }
    const auto truncate = [&](Dims& dims) {
        while (dims.rank() > last + 1) dims.erase(dims.rank() - 1);
    };
    truncate(space.sizes);
    std::ranges::for_each(space.strides, truncate);
    if (last >= 0) return space;
    space.sizes.push_back(1);
    for (Strides& strides : space.strides) strides.push_back(0);
    return space;
}

AxisArray axis_array(const Dims& dims) {
    AxisArray out{};
    std::ranges::copy(dims, out.begin());
    return out;
}

}  // namespace declivity::ops
