// Layer 3, private. A part of a tensor: of each axis some elements, or one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

struct Region {
    struct Axis {
        std::int64_t first = 0, count = 0, step = 1;
        bool dropped = false;  // one element, whose axis the part has not
    };
    std::array<Axis, Dims::kMaxRank> axes{};
    int rank = 0;

    static Region whole(const Shape& shape);
    /// The part of this part that indices take.
    /// @throws ShapeError for an index out of range, or more than there are axes
    [[nodiscard]] Region part(std::span<const Index> indices) const;

    [[nodiscard]] Shape shape() const;
    /// Of a view of the whole.
    [[nodiscard]] ops::View of(const ops::View& whole) const;
    /// The same of a tensor, differentiable; it shares its memory. @param name of the function in its node
    [[nodiscard]] Tensor of(const Tensor& whole, std::string_view name = "operator[]") const;
};

/// x, which is given away, with `src` in the place of a region, differentiable.
/// @throws ShapeError, TypeError, DeviceError naming `name`
Tensor with_region(const char* name, Tensor x, Tensor src, const Region& region);
/// The same of a tensor that takes the result's place: into its own memory, where nobody else can tell.
/// @param x only its place in the graph counts
/// @param elements of x; they are still there after an error, and those of the result otherwise
Tensor with_region(const char* name, const Tensor& x, ops::LazyArray& elements, Tensor src, const Region& region);

}  // namespace declivity::detail
