// Layer 3, private. Part of a tensor: a strided range of each axis, or a single index.
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
        bool dropped = false;  // a single index, whose axis is removed
    };
    std::array<Axis, Dims::kMaxRank> axes{};
    int rank = 0;

    static Region whole(const Shape& shape);
    /// The part that indices select from this part.
    /// @throws ShapeError for an index out of range, or more indices than axes
    [[nodiscard]] Region part(std::span<const Index> indices) const;

    [[nodiscard]] Shape shape() const;
    /// Part of a view of the whole tensor.
    [[nodiscard]] ops::View of(const ops::View& whole) const;
    /// Part of a tensor, differentiable; it shares its memory. @param name of the function in the graph node
    [[nodiscard]] Tensor of(const Tensor& whole, std::string_view name = "operator[]") const;
};

/// x, which is donated, with `src` written to a region; differentiable.
/// @throws ShapeError, TypeError, DeviceError naming `name`
Tensor with_region(const char* name, Tensor x, Tensor src, const Region& region);
/// Overload for a tensor that is replaced by the result: written in place if its memory is unshared.
/// @param x used for its graph node only
/// @param elements of x; still valid after an error, otherwise those of the result
Tensor with_region(const char* name, const Tensor& x, ops::LazyArray& elements, Tensor src, const Region& region);

}  // namespace declivity::detail
