// Layer 3, private. Part of a tensor: a strided range of each axis, or a single index.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <declivity/ops/shape.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

struct Region {
    struct Axis {
        std::int64_t first = 0, count = 0, step = 1;
        bool dropped = false;  // a single index, whose axis is removed
    };
    std::array<Axis, Dims::kMaxRank> axes{};
    int rank = 0;

    static Region full(const Shape& shape);
    /// The part that indices select from this part.
    /// @throws ShapeError for an index out of range, or more indices than axes
    [[nodiscard]] Region part(std::span<const Index> indices) const;

    [[nodiscard]] Shape shape() const;
    /// This part of a view of the tensor.
    [[nodiscard]] ops::View of(const ops::View& base) const;
};

}  // namespace declivity::detail
