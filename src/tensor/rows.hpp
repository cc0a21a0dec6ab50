// Floor 3, private. Rows of a table by their numbers, and back: what functions that index are made of.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/ops/gather.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::detail {

/// table[numbers[i]] for each i, differentiable to any order: table (V, D) of any type, numbers (N) of i32 or i64.
/// @param missing what stands in rows of numbers outside of [0, V); 0 in tables of integers
Tensor take_rows(const char* name, const Tensor& table, const Tensor& numbers, double missing);

/// For each v the sum of x[i] over all i with numbers[i] == v, (size, D), differentiable to any order. Numbers outside
/// count for nothing. Always in the same order.
Tensor sum_rows(const char* name, const Tensor& x, const Tensor& numbers, std::int64_t size);

/// For each v the largest i with numbers[i] == v, or -1: (size), i64.
Tensor last_rows(const char* name, const Tensor& numbers, std::int64_t size);

/// As sum_rows, by another fold; no gradient.
Tensor fold_rows(const char* name, ops::Fold fold, const Tensor& x, const Tensor& numbers, std::int64_t size);

}  // namespace declivity::detail
