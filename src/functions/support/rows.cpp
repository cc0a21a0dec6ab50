#include "rows.hpp"

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/gather.hpp>

#include "tensor/tensor_state.hpp"

namespace declivity::detail {
namespace {

/// Converts indices to i32 or i64, the types that kernels support.
Tensor as_numbers(const Tensor& numbers) { return numbers.dtype() == DType::i32 ? numbers : numbers.to(DType::i64); }

}  // namespace

Tensor sum_rows(const char* name, const Tensor& x, const Tensor& numbers, std::int64_t size) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {size, in.shape[1]});
    ops::sum_rows(name, in, as_numbers(numbers).dense_view(), out);
    return attach_backward(
        name, {x}, out,
        [name, numbers = Saved(numbers)](const GradientContext& context) {
            return std::vector{take_rows(name, context.gradient(), numbers.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor sum_rows_onto(const char* name, const Tensor& base, const Tensor& x, const Tensor& numbers) {
    const ops::View in = x.dense_view(), before = base.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, before.shape);
    ops::sum_rows(name, in, as_numbers(numbers).dense_view(), out, &before);
    return attach_backward(
        name, {base, x}, out,
        [name, numbers = Saved(numbers)](const GradientContext& context) {
            return std::vector{context.gradient(), take_rows(name, context.gradient(), numbers.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor take_rows(const char* name, const Tensor& table, const Tensor& numbers, double missing) {
    const ops::View from = table.dense_view();
    const ops::View out = ops::View::make(from.device(), from.dtype, {numbers.numel(), from.shape[1]});
    ops::gather_rows(name, from, as_numbers(numbers).dense_view(), out, missing);
    return attach_backward(
        name, {table}, out,
        [name, numbers = Saved(numbers), size = from.shape[0]](const GradientContext& context) {
            return std::vector{sum_rows(name, context.gradient(), numbers.get(name), size)};
        },
        RuleKind::differentiable);
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

Tensor take_along(const char* name, const Tensor& x, const Tensor& places, double missing) {
    const ops::View from = x.dense_view(), out = ops::View::make(from.device(), from.dtype, places.shape());
    ops::gather(name, from, as_numbers(places).dense_view(), out, missing);
    return attach_backward(
        name, {x}, out,
        [name, places = Saved(places), size = from.shape[1]](const GradientContext& context) {
            return std::vector{sum_along(name, context.gradient(), places.get(name), size)};
        },
        RuleKind::differentiable);
}

Tensor sum_along(const char* name, const Tensor& x, const Tensor& places, std::int64_t size) {
    const ops::View in = x.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, {in.shape[0], size, in.shape[2]});
    ops::scatter_add(name, nullptr, in, as_numbers(places).dense_view(), out);
    return attach_backward(
        name, {x}, out,
        [name, places = Saved(places)](const GradientContext& context) {
            return std::vector{take_along(name, context.gradient(), places.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor sum_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& places) {
    const ops::View in = x.dense_view(), before = base.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, before.shape);
    ops::scatter_add(name, &before, in, as_numbers(places).dense_view(), out);
    return attach_backward(
        name, {base, x}, out,
        [name, places = Saved(places)](const GradientContext& context) {
            return std::vector{context.gradient(), take_along(name, context.gradient(), places.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor write_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& places) {
    const ops::View in = x.dense_view(), before = base.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, before.shape);
    ops::scatter_last(name, before, in, as_numbers(places).dense_view(), out);
    return Tensor(out);
}

}  // namespace declivity::detail
