// Layer 5, private. Gather and scatter-add of rows of a table and of elements along an axis: building blocks of the
// indexing functions.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/scatter.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// table[numbers[i]] for each i, differentiable to any order: table (V, D) of any type, row indices `numbers` (N) of
/// i32 or i64.
/// @param missing value of rows with an index outside of [0, V); 0 in tables of integers
Tensor take_rows(const char* name, const Tensor& table, const Tensor& numbers, double missing);

/// For each v the sum of x[i] over all i with numbers[i] == v, (size, D), differentiable to any order. Out-of-range
/// indices are ignored. Deterministic: always summed in the same order.
Tensor sum_rows(const char* name, const Tensor& x, const Tensor& numbers, std::int64_t size);
/// base[v] plus that sum.
Tensor sum_rows_onto(const char* name, const Tensor& base, const Tensor& x, const Tensor& numbers);

/// torch.gather along the middle axis of x (outer, size, inner) by indices (outer, taken, inner), differentiable to any
/// order: x[o][places[o][i][k]][k], `missing` for out-of-range indices.
Tensor take_along(const char* name, const Tensor& x, const Tensor& places, double missing);
/// torch.scatter_add along the middle axis, differentiable to any order. Out-of-range indices are ignored.
Tensor sum_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& places);
/// The same onto zeros: (outer, size, inner).
Tensor sum_along(const char* name, const Tensor& x, const Tensor& places, std::int64_t size);
/// torch.scatter along the middle axis, where the last of equal indices wins; no gradient.
Tensor write_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& places);

/// For each v the largest i with numbers[i] == v, or -1: (size), i64.
Tensor last_rows(const char* name, const Tensor& numbers, std::int64_t size);

/// Like sum_rows with another fold; no gradient.
Tensor fold_rows(const char* name, ops::Fold fold, const Tensor& x, const Tensor& numbers, std::int64_t size);

}  // namespace declivity::detail
