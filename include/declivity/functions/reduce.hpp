// Layer 5. Reductions, over all axes if none are given, and top-k.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <declivity/functions/elementwise.hpp>

namespace declivity {

DECLIVITY_API Tensor sum(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor mean(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Largest and smallest element; equal ones share the gradient.
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
/// Aliases of max and min over axes.
DECLIVITY_API Tensor amax(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor amin(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Minimum and maximum.
struct MinMax {
    Tensor min, max;
};
inline std::vector<Tensor> tensors_of(const MinMax& both) { return {both.min, both.max}; }
DECLIVITY_API MinMax aminmax(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Product; 1 for no elements, i64 for integers and bools.
DECLIVITY_API Tensor prod(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Variance: mean of squared deviations, times n / (n - correction); `stddev` (torch.std) is its square root. (A
/// function named std would hide the namespace.)
DECLIVITY_API Tensor var(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
DECLIVITY_API Tensor stddev(const Tensor& x, const Dims& axes = {}, double correction = 1, bool keep_axes = false);
/// p-norm (sum |x|^p)^(1/p); the largest and smallest |x| for p of infinity and minus infinity, the number of nonzero
/// elements for 0.
DECLIVITY_API Tensor norm(const Tensor& x, double p = 2, const Dims& axes = {}, bool keep_axes = false);
/// Deleted to require p before the axes: norm(x, 2, {1}).
Tensor norm(const Tensor& x, std::initializer_list<std::int64_t> axes) = delete;
/// log(sum(exp(x))), without overflow.
DECLIVITY_API Tensor logsumexp(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// True (bool) if all, or any, elements are not 0; and the number of these, in i64.
DECLIVITY_API Tensor all(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor any(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor count_nonzero(const Tensor& x, const Dims& axes = {}, bool keep_axes = false);
/// Index (i64) of the first largest, or smallest, element along one axis.
DECLIVITY_API Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);
DECLIVITY_API Tensor argmin(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

struct TopK {
    Tensor values;
    Tensor indices;  ///< i64, along the axis
};
/// The k largest, or smallest, elements along one axis, sorted; of equal elements the one with the lower index comes
/// first, and NaN counts as the largest. Gradients flow through the values.
DECLIVITY_API TopK topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

}  // namespace declivity
