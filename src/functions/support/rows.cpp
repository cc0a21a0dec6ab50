#include "rows.hpp"

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/gather.hpp>

#include "tensor/tensor_state.hpp"

namespace declivity::detail {
namespace {

/// Converts indices to i32 or i64, the types that kernels support.
Tensor as_index_type(const Tensor& indices) { return indices.dtype() == DType::i32 ? indices : indices.to(DType::i64); }

}  // namespace

Tensor scatter_add_rows(const char* name, const Tensor& x, const Tensor& indices, std::int64_t size) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {size, in.shape[1]});
    ops::sum_rows(name, in, as_index_type(indices).dense_view(), out);
    return attach_backward(
        name, {x}, out,
        [name, indices = Saved(indices)](const GradientContext& context) {
            return std::vector{gather_rows(name, context.gradient(), indices.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor scatter_add_rows(const char* name, const Tensor& base, const Tensor& x, const Tensor& indices) {
    const ops::View in = x.dense_view(), base_view = base.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, base_view.shape);
    ops::sum_rows(name, in, as_index_type(indices).dense_view(), out, &base_view);
    return attach_backward(
        name, {base, x}, out,
        [name, indices = Saved(indices)](const GradientContext& context) {
            return std::vector{context.gradient(), gather_rows(name, context.gradient(), indices.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor gather_rows(const char* name, const Tensor& table, const Tensor& indices, double missing) {
    const ops::View from = table.dense_view();
    const ops::View out = ops::View::make(from.device(), from.dtype, {indices.numel(), from.shape[1]});
    ops::gather_rows(name, from, as_index_type(indices).dense_view(), out, missing);
    return attach_backward(
        name, {table}, out,
        [name, indices = Saved(indices), size = from.shape[0]](const GradientContext& context) {
            return std::vector{scatter_add_rows(name, context.gradient(), indices.get(name), size)};
        },
        RuleKind::differentiable);
}

Tensor last_occurrences(const char* name, const Tensor& indices, std::int64_t size) {
    const ops::View in = as_index_type(indices).dense_view(), out = ops::View::make(in.device(), DType::i64, {size});
    ops::last_rows(name, in, out);
    return Tensor(out);
}

Tensor scatter_reduce_rows(const char* name, ops::Fold fold, const Tensor& x, const Tensor& indices,
                           std::int64_t size) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {size, in.shape[1]});
    ops::fold_rows(name, fold, in, as_index_type(indices).dense_view(), out);
    return Tensor(out);
}

Tensor gather_along(const char* name, const Tensor& x, const Tensor& indices, double missing) {
    const ops::View from = x.dense_view(), out = ops::View::make(from.device(), from.dtype, indices.shape());
    ops::gather(name, from, as_index_type(indices).dense_view(), out, missing);
    return attach_backward(
        name, {x}, out,
        [name, indices = Saved(indices), size = from.shape[1]](const GradientContext& context) {
            return std::vector{scatter_add_along(name, context.gradient(), indices.get(name), size)};
        },
        RuleKind::differentiable);
}

Tensor scatter_add_along(const char* name, const Tensor& x, const Tensor& indices, std::int64_t size) {
    const ops::View in = x.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, {in.shape[0], size, in.shape[2]});
    ops::scatter_add(name, nullptr, in, as_index_type(indices).dense_view(), out);
    return attach_backward(
        name, {x}, out,
        [name, indices = Saved(indices)](const GradientContext& context) {
            return std::vector{gather_along(name, context.gradient(), indices.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor scatter_add_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& indices) {
    const ops::View in = x.dense_view(), base_view = base.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, base_view.shape);
    ops::scatter_add(name, &base_view, in, as_index_type(indices).dense_view(), out);
    return attach_backward(
        name, {base, x}, out,
        [name, indices = Saved(indices)](const GradientContext& context) {
            return std::vector{context.gradient(), gather_along(name, context.gradient(), indices.get(name), 0)};
        },
        RuleKind::differentiable);
}

Tensor scatter_along(const char* name, const Tensor& base, const Tensor& x, const Tensor& indices) {
    const ops::View in = x.dense_view(), base_view = base.dense_view();
    const ops::View out = ops::View::make(in.device(), in.dtype, base_view.shape);
    ops::scatter_last(name, base_view, in, as_index_type(indices).dense_view(), out);
    return Tensor(out);
}

}  // namespace declivity::detail
