#include "index_space.hpp"

#include <algorithm>

namespace declivity::ops {

IndexSpace merge_axes(const IndexSpace& space) {
    IndexSpace merged{{}, std::vector<Strides>(space.strides.size())};
    for (int axis = 0; axis < space.sizes.rank(); ++axis) {
        const std::int64_t size = space.sizes[axis];
        if (size == 1) continue;
        const int last = merged.sizes.rank() - 1;
        bool joins = last >= 0;
        for (std::size_t i = 0; joins && i < space.strides.size(); ++i)
            joins = merged.strides[i][last] == space.strides[i][axis] * size;
        if (joins) merged.sizes[last] *= size;
        else merged.sizes.push_back(size);
        for (std::size_t i = 0; i < space.strides.size(); ++i) {
            if (joins) merged.strides[i][last] = space.strides[i][axis];
            else merged.strides[i].push_back(space.strides[i][axis]);
        }
    }
    if (merged.sizes.empty()) {
        merged.sizes.push_back(1);
        for (Strides& strides : merged.strides) strides.push_back(0);
    }
    return merged;
}

AxisArray axis_array(const Dims& dims) {
    AxisArray out{};
    std::ranges::copy(dims, out.begin());
    return out;
}

}  // namespace declivity::ops
