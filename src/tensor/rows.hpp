// Layer 3, private. Rows of a table by their numbers, elements by their places along an axis, and back: what functions
// that index are made of.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/scatter.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// table[numbers[i]] for each i, differentiable to any order: table (V, D) of any type, numbers (N) of i32 or i64.
/// @param missing what stands in rows of numbers outside of [0, V); 0 in tables of integers
Tensor take_rows(const char* name, const Tensor& table, const Tensor& numbers, double missing);

/// For each v the sum of x[i] over all i with numbers[i] == v, (size, D), differentiable to any order. Numbers outside
/// count for nothing. Always in the same order.
Tensor sum_rows(const char* name, const Tensor& x, const Tensor& numbers, std::int64_t size);
/// base[v] and that sum.
Tensor sum_rows_onto(const char* name, const Tensor& base, const Tensor& x, const Tensor& numbers);

/// As torch.gather along the middle axis of x (outer, size, inner) by places (outer, taken, inner), differentiable to
/// any order: x[o][places[o][i][k]][k], `missing` for places outside.
Tensor take_along(const char* name, const Tensor& x, const Tensor& places, double missing);
/// As torch.scatter_add along the middle axis, differentiable to any order. Places outside count for nothing.
Tensor sum_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& places);
/// The same onto nothing: (outer, size, inner).
Tensor sum_along(const char* name, const Tensor& x, const Tensor& places, std::int64_t size);
/// As torch.scatter along the middle axis, of equal places the last one; no gradient.
Tensor write_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& places);

/// For each v the largest i with numbers[i] == v, or -1: (size), i64.
Tensor last_rows(const char* name, const Tensor& numbers, std::int64_t size);

/// As sum_rows, by another fold; no gradient.
Tensor fold_rows(const char* name, ops::Fold fold, const Tensor& x, const Tensor& numbers, std::int64_t size);

}  // namespace declivity::detail
