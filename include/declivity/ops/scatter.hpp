// Layer 2. Scattering of elements along an axis and of rows: colliding elements are reduced, or the last one is kept.
// The order is fixed, so that results are bit-identical in every run on a device: devices of style simt sort the
// indices; with style simd each work-item owns a range of positions or rows.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// out[row][indices[row][i]] = x[row][i], and 0 at all other positions: x and indices (rows, taken), indices distinct
/// within a row and in 0 ... size - 1, which is not checked; out (rows, size).
/// @throws ShapeError, TypeError, DeviceError naming `function`; so do the other functions here
DECLIVITY_API void scatter(std::string_view function, const View& x, const View& indices, const View& out);

/// out[o][v][k] = base[o][v][k] + sum of x[o][i][k] over all i with indices[o][i][k] == v, in this order;
/// torch.scatter_add along the middle axis: x and indices (outer, taken, inner), base and out (outer, size, inner).
/// Indices outside of [0, size) are ignored; a NaN affects its own position only.
/// @param base nullptr for 0
DECLIVITY_API void scatter_add(std::string_view function, const View* base, const View& x, const View& indices,
                               const View& out);
/// torch.scatter along the middle axis: x[o][i][k] of the largest i replaces base; shapes as for scatter_add.
DECLIVITY_API void scatter_last(std::string_view function, const View& base, const View& x, const View& indices,
                                const View& out);

/// Reduction of rows with equal indices.
enum class Fold : std::uint8_t { sum, product, largest, smallest };

/// out[v] = reduction of x[i] over all i with indices[i] == v; 0 if there are none. x (N, D) of any type but bool,
/// numbers (N), out (V, D). Indices outside of [0, V) are ignored; a NaN is the result. N and V below 2^31.
DECLIVITY_API void fold_rows(std::string_view function, Fold fold, const View& x, const View& indices, const View& out);
/// fold_rows with Fold::sum, added to `base` (V, D) unless it is nullptr.
DECLIVITY_API void sum_rows(std::string_view function, const View& x, const View& indices, const View& out,
                            const View* base = nullptr);
/// out[v] = the largest i with indices[i] == v, or -1: out (V), i64.
DECLIVITY_API void last_rows(std::string_view function, const View& indices, const View& out);

/// @}

}  // namespace declivity::ops
