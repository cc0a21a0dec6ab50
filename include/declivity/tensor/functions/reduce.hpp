// Floor 3. Reductions, over all axes when none are given, and the first elements in order.
#pragma once

#include <cstdint>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

DECLIVITY_API Tensor sum(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor mean(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Largest element; several equal ones share the gradient.
DECLIVITY_API Tensor max(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor min(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Position (i64) of the first largest element along one axis.
DECLIVITY_API Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

struct TopK {
    Tensor values;
    Tensor indices;  ///< i64, along the axis
};
/// The k largest elements along one axis, or smallest, the first in order first; of equal ones that of the lower place,
/// and NaN counts as the largest. Gradients flow through the values.
DECLIVITY_API TopK topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

}  // namespace declivity
