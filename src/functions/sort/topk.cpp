#include <declivity/ops/topk.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/gather.hpp>
#include <declivity/ops/scatter.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>

#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

Tensor gather_topk(const Tensor& x, const Tensor& indices);

/// Scatters elements to their indices (rows, k) in rows of n, 0 otherwise.
Tensor scatter_topk(const Tensor& x, const Tensor& indices, std::int64_t n) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {in.shape[0], n});
    ops::scatter("topk", in, indices.dense_view(), out);
    return attach_backward(
        "topk_gradient", {x}, out,
        [indices = Saved(indices)](const GradientContext& context) {
            return std::vector{gather_topk(context.gradient(), indices.get("topk"))};
        },
        RuleKind::differentiable);
}

Tensor gather_topk(const Tensor& x, const Tensor& indices) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, indices.shape());
    ops::gather("topk", in, indices.dense_view(), out);
    return attach_backward(
        "topk_gradient", {x}, out,
        [indices = Saved(indices), n = in.shape[1]](const GradientContext& context) {
            return std::vector{scatter_topk(context.gradient(), indices.get("topk"), n)};
        },
        RuleKind::differentiable);
}

/// x (rows, n).
TopK topk_rows(const Tensor& x, std::int64_t k, bool largest) {
    const auto forward = ops::topk(x.dense_view(), k, largest);
    const Tensor indices(forward.indices);
    const Tensor values = attach_backward(
        "topk", {x}, forward.values,
        [indices = Saved(indices), n = x.size(1)](const GradientContext& context) {
            return std::vector{scatter_topk(context.gradient(), indices.get("topk"), n)};
        },
        RuleKind::differentiable);
    return {values, indices};
}

}  // namespace

TopK topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
    const FunctionCall call("topk", {{"x", x}}, {{"k", k}, {"axis", axis}, {"largest", largest}});
    call.require_defined({"x"});
    const auto finish = [&](TopK result) {
        call.results({result.values, result.indices});
        return result;
    };
    if (x.rank() == 0) {
        const TopK result = topk(reshape(x, {1}), k, axis, largest);
        return finish({reshape(result.values, {}), reshape(result.indices, {})});
    }
    const int along = normalize_axis("topk", axis, x.rank());
    const Tensor moved = along + 1 == x.rank() ? x : transpose(x, along, -1);
    Shape shape = moved.shape();
    const std::int64_t n = shape.back(), rows = n == 0 ? 0 : moved.numel() / n;
    shape[-1] = k;
    TopK result = topk_rows(reshape(moved, {rows, n}), k, largest);
    const auto restore = [&](const Tensor& tensor) {
        const Tensor unflattened = reshape(tensor, shape);
        return along + 1 == x.rank() ? unflattened : transpose(unflattened, along, -1);
    };
    return finish({restore(result.values), restore(result.indices)});
}

}  // namespace declivity
