// Floor 2. Elements by their places, and rows by their numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// out[row][i] = x[row][places[row][i]]: along the last axis, as torch.gather. x (rows, size), of any type; places
/// (rows, taken), i32 or i64, each in 0 ... size - 1, which is not checked; out (rows, taken). Dense, on one device.
/// @throws ShapeError, TypeError, DeviceError naming `function`
DECLIVITY_API void gather(std::string_view function, const View& x, const View& places, const View& out);

/// out[row][places[row][i]] = x[row][i], and 0 elsewhere: x and places (rows, taken), no place twice in a row; out
/// (rows, size).
DECLIVITY_API void scatter(std::string_view function, const View& x, const View& places, const View& out);

/// out[i] = table[numbers[i]], rows of D elements: table (V, D), of any type; numbers (N), i32 or i64; out (N, D). A
/// number outside of [0, V) gives elements that are `missing`, 0 where they are no floating numbers.
DECLIVITY_API void gather_rows(std::string_view function, const View& table, const View& numbers, const View& out,
                               double missing);

/// How rows of one number become one.
enum class Fold : std::uint8_t { sum, product, largest, smallest };

/// out[v] = the sum, ... of x[i] over all i with numbers[i] == v; 0 where there are none. x (N, D) of any type but
/// bool, numbers (N), out (V, D). Numbers outside of [0, V) count for nothing; a NaN is the result. Always in the same
/// order, so that results are the same to the bit in every run on a device: GPU-like devices sort the numbers, and of
/// CPU-like ones each work-item has numbers, or rows, of its own. N and V below 2^31.
DECLIVITY_API void fold_rows(std::string_view function, Fold fold, const View& x, const View& numbers, const View& out);
/// The sum.
DECLIVITY_API void sum_rows(std::string_view function, const View& x, const View& numbers, const View& out);
/// out[v] = the largest i with numbers[i] == v, or -1: out (V), i64.
DECLIVITY_API void last_rows(std::string_view function, const View& numbers, const View& out);

}  // namespace declivity::ops
