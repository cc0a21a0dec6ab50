// Layer 2. Elements to places along an axis, and rows to their numbers: sums and other folds of those that meet, or the
// last of them. Always in the same order, so that results are the same to the bit in every run on a device: GPU-like
// devices sort the numbers, and of CPU-like ones each work-item has places, or rows, of its own.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[row][places[row][i]] = x[row][i], and 0 elsewhere: x and places (rows, taken), no place twice in a row, each in
/// 0 ... size - 1, which is not checked; out (rows, size).
/// @throws ShapeError, TypeError, DeviceError naming `function`, as all of these
DECLIVITY_API void scatter(std::string_view function, const View& x, const View& places, const View& out);

/// out[o][v][k] = base[o][v][k] and the sum of x[o][i][k] over all i with places[o][i][k] == v, in this order, as
/// torch.scatter_add along the middle axis: x and places (outer, taken, inner), base and out (outer, size, inner).
/// Places outside of [0, size) count for nothing; a NaN is the result of its own place alone.
/// @param base nullptr for 0
DECLIVITY_API void scatter_add(std::string_view function, const View* base, const View& x, const View& places,
                               const View& out);
/// As that, but x[o][i][k] of the largest i takes the place of base, as in torch.scatter.
DECLIVITY_API void scatter_last(std::string_view function, const View& base, const View& x, const View& places,
                                const View& out);

/// How rows of one number become one.
enum class Fold : std::uint8_t { sum, product, largest, smallest };

/// out[v] = the sum, ... of x[i] over all i with numbers[i] == v; 0 where there are none. x (N, D) of any type but
/// bool, numbers (N), out (V, D). Numbers outside of [0, V) count for nothing; a NaN is the result. N and V below 2^31.
DECLIVITY_API void fold_rows(std::string_view function, Fold fold, const View& x, const View& numbers, const View& out);
/// The sum, and before it what `base` (V, D) holds, where it is not nullptr.
DECLIVITY_API void sum_rows(std::string_view function, const View& x, const View& numbers, const View& out,
                            const View* base = nullptr);
/// out[v] = the largest i with numbers[i] == v, or -1: out (V), i64.
DECLIVITY_API void last_rows(std::string_view function, const View& numbers, const View& out);

}  // namespace declivity::ops
