// Layer 2. Reductions: many elements to one, over any axes.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

enum class Reduce : std::uint8_t {
    /// floating numbers in their own type, f16 and bf16 added up in f32, every integer type and bool in i64; 0 for no
    /// elements
    sum,
    mean,  ///< floating numbers; NaN for no elements
    max,   ///< any type; a NaN among the elements is the result
    min,
};

/// "sum", "mean", ...
DECLIVITY_API std::string_view name_of(Reduce kind) noexcept;
/// Type of the result of reducing elements of type `x`.
/// @throws TypeError for the mean of integers
DECLIVITY_API DType reduced_dtype(Reduce kind, DType x);
/// Axes of -rank..rank-1 as 0..rank-1 in ascending order; all of them when none are given. None of a number, whose axis
/// 0 or -1 may be named.
/// @throws ShapeError naming `function` for an axis outside or given twice
DECLIVITY_API Dims normalize_axes(std::string_view function, const Dims& axes, int rank);
/// Shape of a reduction over axes from normalize_axes: they have size 1, or are left out.
DECLIVITY_API Shape reduced_shape(const Shape& shape, const Dims& axes, bool keep_axes);

/// Reduces `x` over `axes` (all when none are given) into `out`, whose shape is that of x with these axes left out or
/// of size 1, and whose type is reduced_dtype(kind, x.dtype). Any strides; those of `out` without zeros. `out` must not
/// overlap x. Sums of f32 are made of short partial sums, always cut the same way on the same device.
/// @throws ShapeError for a maximum or minimum of no elements, or an `out` of another shape
DECLIVITY_API void reduce(Reduce kind, const View& x, const Dims& axes, const View& out);
/// The same into dense memory of its own.
DECLIVITY_API View reduce(Reduce kind, const View& x, const Dims& axes, bool keep_axes);
/// Of a value that waits: where its axes lie so, one kernel computes the elements and reduces them, and they are never
/// stored. Elements of f16 and bf16 are then not rounded before.
DECLIVITY_API View reduce(Reduce kind, const LazyArray& x, const Dims& axes, bool keep_axes);

}  // namespace declivity::ops
