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

Tensor gathered(const Tensor& x, const Tensor& places);

/// Scatters elements to their indices (rows, k) in rows of n, 0 otherwise.
Tensor scattered(const Tensor& x, const Tensor& places, std::int64_t n) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {in.shape[0], n});
    ops::scatter("topk", in, places.dense_view(), out);
    return attach_backward(
        "topk_gradient", {x}, out,
        [places = Saved(places)](const GradientContext& context) {
            return std::vector{gathered(context.gradient(), places.get("topk"))};
        },
        RuleKind::differentiable);
}

Tensor gathered(const Tensor& x, const Tensor& places) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, places.shape());
    ops::gather("topk", in, places.dense_view(), out);
    return attach_backward(
        "topk_gradient", {x}, out,
        [places = Saved(places), n = in.shape[1]](const GradientContext& context) {
            return std::vector{scattered(context.gradient(), places.get("topk"), n)};
        },
        RuleKind::differentiable);
}

/// x (rows, n).
TopK of_rows(const Tensor& x, std::int64_t k, bool largest) {
    const auto made = ops::topk(x.dense_view(), k, largest);
    const Tensor places(made.places);
    const Tensor values = attach_backward(
        "topk", {x}, made.values,
        [places = Saved(places), n = x.size(1)](const GradientContext& context) {
            return std::vector{scattered(context.gradient(), places.get("topk"), n)};
        },
        RuleKind::differentiable);
    return {values, places};
}

}  // namespace

TopK topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
    const FunctionCall call("topk", {{"x", x}}, {{"k", k}, {"axis", axis}, {"largest", largest}});
    call.require_defined({"x"});
    const auto given = [&](TopK made) {
        call.results({made.values, made.indices});
        return made;
    };
    if (x.rank() == 0) {
        const TopK made = topk(reshape(x, {1}), k, axis, largest);
        return given({reshape(made.values, {}), reshape(made.indices, {})});
    }
    const int along = normalize_axis("topk", axis, x.rank());
    const Tensor turned = along + 1 == x.rank() ? x : transpose(x, along, -1);
    Shape shape = turned.shape();
    const std::int64_t n = shape.back(), rows = n == 0 ? 0 : turned.numel() / n;
    shape[-1] = k;
    TopK made = of_rows(reshape(turned, {rows, n}), k, largest);
    const auto back = [&](const Tensor& tensor) {
        const Tensor whole = reshape(tensor, shape);
        return along + 1 == x.rank() ? whole : transpose(whole, along, -1);
    };
    return given({back(made.values), back(made.indices)});
}

}  // namespace declivity
