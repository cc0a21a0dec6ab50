// Layer 3. Reductions, over all axes when none are given, and the first elements in order.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <declivity/tensor/functions/elementwise.hpp>

namespace declivity {

DECLIVITY_API Tensor sum(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor mean(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Largest element; several equal ones share the gradient.
DECLIVITY_API Tensor max(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor min(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// maximum(a, b), minimum(a, b).
template <std::derived_from<Tensor> A, std::derived_from<Tensor> B>
Tensor max(const A& a, const B& b) {
    return maximum(a, b);
}
template <std::derived_from<Tensor> A, std::derived_from<Tensor> B>
Tensor min(const A& a, const B& b) {
    return minimum(a, b);
}
/// The same as those over axes by other names.
DECLIVITY_API Tensor amax(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor amin(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Both at once.
struct MinMax {
    Tensor min, max;
};
inline std::vector<Tensor> tensors_of(const MinMax& both) { return {both.min, both.max}; }
DECLIVITY_API MinMax aminmax(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Product; 1 of no elements, of integers and bools i64.
DECLIVITY_API Tensor prod(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Mean of squared differences to the mean, times n / (n - correction); `stddev`, torch.std, its root. (A function
/// named std would hide the namespace.)
DECLIVITY_API Tensor var(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
DECLIVITY_API Tensor stddev(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
/// (sum |x|^p)^(1/p); the largest and smallest |x| for p of infinity and minus infinity, how many are not 0 for 0.
DECLIVITY_API Tensor norm(const Tensor& x, double p = 2, const Dims& axes = {}, bool keep_axes = false);
/// Axes stand behind p: norm(x, 2, {1}).
Tensor norm(const Tensor& x, std::initializer_list<std::int64_t> axes) = delete;
/// log(sum(exp(x))), without overflow.
DECLIVITY_API Tensor logsumexp(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Whether all, or any, elements are not 0, in bool; and how many, in i64.
DECLIVITY_API Tensor all(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor any(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor count_nonzero(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Position (i64) of the first largest element along one axis, and of the first smallest.
DECLIVITY_API Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);
DECLIVITY_API Tensor argmin(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

struct TopK {
    Tensor values;
    Tensor indices;  ///< i64, along the axis
};
/// The k largest elements along one axis, or smallest, the first in order first; of equal ones that of the lower place,
/// and NaN counts as the largest. Gradients flow through the values.
DECLIVITY_API TopK topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

}  // namespace declivity
