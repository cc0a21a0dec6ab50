#include "rows.hpp"

#include <declivity/tensor/autograd.hpp>

#include "tensor_state.hpp"

namespace declivity::detail {
namespace {

/// Kernels take i32 and i64.
Tensor as_numbers(const Tensor& numbers) { return numbers.dtype() == DType::i32 ? numbers : numbers.to(DType::i64); }

}  // namespace

Tensor sum_rows(const char* name, const Tensor& x, const Tensor& numbers, std::int64_t size) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {size, in.shape[1]});
    ops::sum_rows(name, in, as_numbers(numbers).dense_view(), out);
    return differentiable(
        name, {x}, out,
        [name, numbers = Saved(numbers)](const GradientContext& context) {
            return std::vector{take_rows(name, context.gradient(), numbers.get(name), 0)};
        },
        RuleKind::composed);
}

Tensor take_rows(const char* name, const Tensor& table, const Tensor& numbers, double missing) {
    const ops::View from = table.dense_view();
    const ops::View out = ops::View::make(from.device(), from.dtype, {numbers.numel(), from.shape[1]});
    ops::gather_rows(name, from, as_numbers(numbers).dense_view(), out, missing);
    return differentiable(
        name, {table}, out,
        [name, numbers = Saved(numbers), size = from.shape[0]](const GradientContext& context) {
            return std::vector{sum_rows(name, context.gradient(), numbers.get(name), size)};
        },
        RuleKind::composed);
}

Tensor last_rows(const char* name, const Tensor& numbers, std::int64_t size) {
    const ops::View in = as_numbers(numbers).dense_view(), out = ops::View::make(in.device(), DType::i64, {size});
    ops::last_rows(name, in, out);
    return Tensor(out);
}

Tensor fold_rows(const char* name, ops::Fold fold, const Tensor& x, const Tensor& numbers, std::int64_t size) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {size, in.shape[1]});
    ops::fold_rows(name, fold, in, as_numbers(numbers).dense_view(), out);
    return Tensor(out);
}

}  // namespace declivity::detail
