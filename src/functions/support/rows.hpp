// Layer 5, private. Gather and scatter-add of rows of a table and of elements along an axis: building blocks of the
// indexing functions.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/scatter.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// table[indices[i]] for each i, differentiable to any order: table (V, D) of any type, row indices `indices` (N) of
/// i32 or i64.
/// @param missing value of rows with an index outside of [0, V); 0 in tables of integers
Tensor gather_rows(const char* name, const Tensor& table, const Tensor& indices, double missing);

/// For each v the sum of x[i] over all i with indices[i] == v, (size, D), differentiable to any order. Out-of-range
/// indices are ignored. Deterministic: always summed in the same order.
Tensor scatter_add_rows(const char* name, const Tensor& x, const Tensor& indices, std::int64_t size);
/// The same added to `base` (V, D).
Tensor scatter_add_rows(const char* name, const Tensor& base, const Tensor& x, const Tensor& indices);

/// torch.gather along the middle axis of x (outer, size, inner) by indices (outer, taken, inner), differentiable to any
/// order: x[o][indices[o][i][k]][k], `missing` for out-of-range indices.
Tensor gather_along(const char* name, const Tensor& x, const Tensor& indices, double missing);
/// torch.scatter_add along the middle axis, differentiable to any order. Out-of-range indices are ignored.
Tensor scatter_add_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& indices);
/// The same onto zeros: (outer, size, inner).
Tensor scatter_add_along(const char* name, const Tensor& x, const Tensor& indices, std::int64_t size);
/// torch.scatter along the middle axis, where the last of equal indices wins; no gradient.
Tensor scatter_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& indices);

/// For each v the largest i with indices[i] == v, or -1: (size), i64.
Tensor last_occurrences(const char* name, const Tensor& indices, std::int64_t size);

/// scatter_add_rows with another reduction (torch.scatter_reduce); no gradient.
Tensor scatter_reduce_rows(const char* name, ops::Fold fold, const Tensor& x, const Tensor& indices, std::int64_t size);

}  // namespace declivity::detail
