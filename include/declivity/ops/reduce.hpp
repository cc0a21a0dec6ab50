// Layer 2. Reductions over any axes.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

enum class Reduce : std::uint8_t {
    /// floating types in their own type (f16 and bf16 accumulated in f32), integers and bool in i64; 0 for no elements
    sum,
    mean,  ///< floating types; NaN for no elements
    max,   ///< any type; NaN if any element is NaN
    min,
};

/// "sum", "mean", ...
DECLIVITY_API std::string_view name_of(Reduce kind) noexcept;
/// Result type of a reduction of elements of type `x`.
/// @throws TypeError for the mean of integers
DECLIVITY_API DType reduced_dtype(Reduce kind, DType x);
/// Normalises axes from -rank..rank-1 to 0..rank-1 in ascending order; all axes if none are given. For rank 0 the
/// result is empty, and axis 0 or -1 is accepted.
/// @throws ShapeError naming `function` for an axis out of range or given twice
DECLIVITY_API Dims normalize_axes(std::string_view function, const Dims& axes, int rank);
/// Shape of a reduction over axes from normalize_axes: they have size 1, or are removed.
DECLIVITY_API Shape reduced_shape(const Shape& shape, const Dims& axes, bool keep_axes);

/// Reduces `x` over `axes` (all if none are given) into `out`, whose shape is that of x with these axes removed or of
/// size 1, and whose type is reduced_dtype(kind, x.dtype). Any strides; those of `out` without zeros. `out` must not
/// overlap x. Sums of f32 consist of short partial sums, always divided the same way on the same device.
/// @throws ShapeError for a maximum or minimum of no elements, or an `out` of another shape
DECLIVITY_API void reduce(Reduce kind, const View& x, const Dims& axes, const View& out);
/// Reduces into newly allocated dense memory.
DECLIVITY_API View reduce(Reduce kind, const View& x, const Dims& axes, bool keep_axes);
/// Reduces a pending expression: if its axes allow it, one kernel computes the elements and reduces them without
/// storing them. Elements of f16 and bf16 are then not rounded before the reduction.
DECLIVITY_API View reduce(Reduce kind, const LazyArray& x, const Dims& axes, bool keep_axes);

/// @}

}  // namespace declivity::ops
