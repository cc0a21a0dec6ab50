// Layer 5, private. Code shared by losses.
#pragma once

#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "loss_divisor.hpp"

namespace declivity::detail {

inline Tensor reduced(const Tensor& losses, Reduction reduction) {
    if (reduction == Reduction::mean) note_divisor(static_cast<double>(losses.numel()));
    return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

/// Reduction of weighted losses; the mean divides by the sum of the weights.
inline Tensor weighted(const Tensor& losses, const Tensor& weight, Reduction reduction) {
    const Tensor weighted_losses = losses * weight;
    if (reduction != Reduction::mean) return reduced(weighted_losses, reduction);
    const Tensor divisor = sum(weight);
    note_divisor(divisor);
    return sum(weighted_losses) / divisor;
}

/// max(x, 0), with gradient 0 at 0, like PyTorch's clamp_min.
inline Tensor at_least_zero(const Tensor& x) { return clamp_min(x, 0.0); }

/// Checks that x is of a floating-point type, and that the others, unless undefined, are on its device. @return the
/// promoted type of all
inline DType loss_type(std::string_view function, std::string_view name, const Tensor& x,
                       std::initializer_list<Tensor> others) {
    ops::require_real(function, name, x.dtype());
    DType type = x.dtype();
    for (const Tensor& other : others) {
        if (!other.defined()) continue;
        ops::require_same_device(function, x.device(), other.device());
        if (is_floating(other.dtype()) && (other.rank() > 0 || x.rank() == 0))
            type = promote_types(type, other.dtype());
    }
    return type;
}

/// Overload for an input and a target of its shape.
inline DType pair_type(std::string_view function, const Tensor& x, const Tensor& target,
                       std::initializer_list<Tensor> others = {}, std::string_view name = "x") {
    ops::require_shape(function, "the target", target.shape(), x.shape());
    return promote_types(loss_type(function, name, x, {target}), loss_type(function, name, x, others));
}

/// Returns whether `from` broadcasts to `to`.
inline bool broadcasts_to(const Shape& from, const Shape& to) {
    if (from.rank() > to.rank()) return false;
    for (int axis = 1; axis <= from.rank(); ++axis)
        if (from[-axis] != 1 && from[-axis] != to[-axis]) return false;
    return true;
}

/// Checks that a tensor is undefined or broadcasts to `shape`.
inline void require_broadcastable(std::string_view function, std::string_view name, const Tensor& x,
                                  const Shape& shape) {
    if (x.defined() && !broadcasts_to(x.shape(), shape))
        throw ShapeError(fmt::format("{}: expected {} of a shape that stretches to {}, got {}", function, name,
                                     shape.str(), x.shape().str()));
}

}  // namespace declivity::detail
