#include "region.hpp"

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/work_split.hpp"

namespace declivity::detail {

Region Region::full(const Shape& shape) {
    Region region{.rank = shape.rank()};
    for (int axis = 0; axis < shape.rank(); ++axis)
        region.axes[static_cast<std::size_t>(axis)] = {.first = 0, .count = shape[axis]};
    return region;
}

Region Region::part(std::span<const Index> indices) const {
    Region out = *this;
    std::size_t axis = 0;
    const auto end = static_cast<std::size_t>(rank);
    const auto next = [&] {
        while (axis < end && out.axes[axis].dropped) ++axis;
        if (axis == end)
            throw ShapeError(fmt::format("operator[]: expected at most one index for each axis of {}, got {}",
                                         shape().str(), indices.size()));
    };
    int position = 0;
    for (const Index& index : indices) {
        next();
        Axis& range = out.axes[axis++];
        if (const auto& element = index.element()) {
            if (*element < -range.count || *element >= range.count)
                throw ShapeError(fmt::format("operator[]: expected an index from {} to {} along axis {}, got {}",
                                             -range.count, range.count - 1, position, *element));
            range.first += (*element < 0 ? *element + range.count : *element) * range.step;
            range.count = 1;
            range.dropped = true;
        } else {
            const Slice& slice = index.slice();
            if (slice.step < 1)
                throw ShapeError(fmt::format("operator[]: expected a step of at least 1, got {}", slice.step));
            const auto within = [&](std::int64_t i) {
                return std::clamp<std::int64_t>(i < 0 ? i + range.count : i, 0, range.count);
            };
            const std::int64_t from = within(slice.start.value_or(0)), to = within(slice.stop.value_or(range.count));
            range.first += from * range.step;
            range.count = to > from ? ceil_div(to - from, slice.step) : 0;
            range.step *= slice.step;
        }
        ++position;
    }
    return out;
}

Shape Region::shape() const {
    Shape out;
    for (const Axis& axis : std::span(axes).first(static_cast<std::size_t>(rank)))
        if (!axis.dropped) out.push_back(axis.count);
    return out;
}

ops::View Region::of(const ops::View& base) const {
    ops::View out = base;
    for (int axis = rank - 1; axis >= 0; --axis) {
        const Axis& range = axes[static_cast<std::size_t>(axis)];
        out = ops::sliced(out, axis, range.count == 0 ? 0 : range.first, range.count, range.step);
        if (!range.dropped) continue;
        out.shape.erase(axis);
        out.strides.erase(axis);
    }
    return out;
}

}  // namespace declivity::detail
