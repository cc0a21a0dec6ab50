// Floor 2. Elements by their places, and rows by their numbers.
#pragma once

#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[row][i] = x[row][places[row][i]]: along the last axis, as torch.gather. x (rows, size), f32 or f64; places
/// (rows, taken), i32 or i64, each in 0 ... size - 1, which is not checked; out (rows, taken). Dense, on one device.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void gather(std::string_view function, const View& x, const View& places, const View& out);

/// out[row][places[row][i]] = x[row][i], and 0 elsewhere: x and places (rows, taken), no place twice in a row; out
/// (rows, size).
DECLIVITY_API void scatter(std::string_view function, const View& x, const View& places, const View& out);

/// out[i] = table[numbers[i]], rows of D elements: table (V, D), f32 or f64; numbers (N), i32 or i64; out (N, D). A
/// number outside of [0, V) gives elements that are `missing`.
DECLIVITY_API void gather_rows(std::string_view function, const View& table, const View& numbers, const View& out,
                               double missing);

/// out[v] = sum of x[i] over all i with numbers[i] == v, in the order of i: x (N, D), numbers (N), out (V, D). Numbers
/// outside of [0, V) count for nothing. By sorting the numbers, so that results are the same to the bit in every run.
/// N and V below 2^31.
DECLIVITY_API void sum_rows(std::string_view function, const View& x, const View& numbers, const View& out);

}  // namespace declivity::ops
