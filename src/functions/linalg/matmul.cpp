#include <declivity/ops/matmul.hpp>

#include <optional>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/linalg.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "functions/support/broadcast.hpp"
#include "ops/engine/lazy_array.hpp"

namespace declivity {
namespace {

/// Batch axes in front of a matrix merged into one: a view if its strides allow, otherwise a dense copy.
ops::View as_batch(const ops::View& view, std::int64_t batch) {
    const int rank = view.rank();
    const std::int64_t rows = view.shape[rank - 2], columns = view.shape[rank - 1];
    ops::View out = view;
    out.shape = {batch, rows, columns};
    if (rank <= 3) {
        out.strides = {rank == 3 ? view.strides[0] : 0, view.strides[rank - 2], view.strides[rank - 1]};
        return out;
    }
    std::int64_t inner = 0,
                 extent = 0;  // stride of the innermost batch axis longer than 1, and the extent of the axes so far
    bool mergeable = true, first = true;
    for (int axis = rank - 3; axis >= 0; --axis) {
        if (view.shape[axis] == 1) continue;
        if (first) inner = view.strides[axis];
        else mergeable = mergeable && view.strides[axis] == extent;  // repeated axes (stride 0): all must be repeated
        first = false;
        extent = view.strides[axis] * view.shape[axis];
    }
    if (mergeable) {
        out.strides = {inner, view.strides[rank - 2], view.strides[rank - 1]};
        return out;
    }
    return ops::reshaped(ops::dense_copy_if_needed(view), {batch, rows, columns});
}

/// (..., M, K) x (..., K, N) for operands of at least two axes.
Tensor product(const Tensor& a, const Tensor& b) {
    Shape batch_a = a.shape(), batch_b = b.shape();
    const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
    if (b.size(-2) != k)
        throw ShapeError(
            fmt::format("matmul: expected (..., M, K) x (..., K, N), got {} x {}", a.shape().str(), b.shape().str()));
    for (int i = 0; i < 2; ++i) {
        batch_a.erase(batch_a.rank() - 1);
        batch_b.erase(batch_b.rank() - 1);
    }
    const Shape batch_shape = broadcast_shapes("matmul", batch_a, batch_b);
    const auto with_batch = [&](std::int64_t rows, std::int64_t columns) {
        Shape shape = batch_shape;
        shape.push_back(rows);
        shape.push_back(columns);
        return shape;
    };
    const ops::View &in_a = a.value().view(), &in_b = b.value().view();
    ops::require_alike("matmul", "a", in_a, "b", in_b);
    const std::int64_t batch = batch_shape.numel();
    const ops::View left = as_batch(ops::expanded("matmul", in_a, with_batch(m, k)), batch);
    const ops::View right = as_batch(ops::expanded("matmul", in_b, with_batch(k, n)), batch);
    if (!is_floating(a.dtype()) && a.dtype() != DType::boolean)
        return Tensor(ops::reshaped(ops::integer_matmul(left, right), with_batch(m, n)));
    return attach_backward(
        "matmul", {a, b}, ops::matmul(left, right, with_batch(m, n)),
        [a = detail::saved_for(b, a), b = detail::saved_for(a, b), a_shape = a.shape(),
         b_shape = b.shape()](const GradientContext& context) {
            const Tensor& g = context.gradient();
            return std::vector{
                context.needs(0) ? detail::sum_to(matmul(g, transpose(b.get("matmul"))), a_shape) : Tensor(),
                context.needs(1) ? detail::sum_to(matmul(transpose(a.get("matmul")), g), b_shape) : Tensor()};
        },
        RuleKind::differentiable);
}

/// x (rows, in) times a transposed weight (out, in), plus the bias, if any, in the epilogue.
Tensor linear_rows(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    if (!is_floating(x.dtype()))
        throw TypeError(fmt::format(
            "linear: expected f32, f64, f16 or bf16 as x, got {} (convert with .to(DType::f32))", name_of(x.dtype())));
    // Weights stored in 16-bit floats: upcast to x's type for this product, and once more for its gradient.
    const auto upcast = [&](const Tensor& tensor) {
        return x.dtype() == DType::f32 && is_16bit_float(tensor.dtype()) ? tensor.to(x.dtype()) : tensor;
    };
    const Tensor upcast_weight = upcast(weight);
    const ops::View &in = x.value().view(), &factor = upcast_weight.value().view();
    ops::require_alike("linear", "x", in, "weight", factor);
    std::optional<ops::View> offset;
    if (bias.defined()) {
        offset = upcast(bias).value().view();
        ops::require_alike("linear", "x", in, "bias", *offset);
    }
    const ops::LazyArray out = ops::matmul(as_batch(in, 1), as_batch(ops::permuted(factor, {1, 0}), 1),
                                           {x.size(0), weight.size(0)}, offset, detail::use_of(weight));
    return attach_backward(
        "linear", {x, weight, bias}, out,
        [x = detail::saved_for(weight, x), weight = detail::saved_for(x, weight), type = weight.dtype(),
         bias_dtype = bias.defined() ? bias.dtype() : x.dtype()](const GradientContext& context) {
            const Tensor& g = context.gradient();
            return std::vector{context.needs(0) ? matmul(g, weight.get("linear").to(g.dtype())) : Tensor(),
                               context.needs(1) ? matmul(transpose(g), x.get("linear")).to(type) : Tensor(),
                               context.needs(2) ? sum(g, {0}).to(bias_dtype) : Tensor()};
        },
        RuleKind::differentiable);
}

Tensor without_axis(const Tensor& x, std::int64_t axis) {
    Shape shape = x.shape();
    shape.erase(normalize_axis("matmul", axis, x.rank()));
    return reshape(x, shape);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
    const FunctionCall call("matmul", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    if (a.rank() == 0 || b.rank() == 0)
        throw ShapeError(fmt::format("matmul: expected tensors of at least one axis, got {} x {}", a.shape().str(),
                                     b.shape().str()));
    if (a.rank() == 1) return call.result(without_axis(matmul(reshape(a, {1, a.numel()}), b), b.rank() == 1 ? -1 : -2));
    if (b.rank() == 1) return call.result(without_axis(matmul(a, reshape(b, {b.numel(), 1})), -1));
    // A matrix on the right: a's batch axes become rows, one large product instead of many small ones.
    if (a.rank() > 2 && b.rank() == 2) {
        Shape shape = a.shape();
        shape[shape.rank() - 1] = b.size(1);
        if (a.size(-1) != b.size(0))
            throw ShapeError(fmt::format("matmul: expected (..., M, K) x (..., K, N), got {} x {}", a.shape().str(),
                                         b.shape().str()));
        std::int64_t rows = 1;
        for (int axis = 0; axis + 1 < a.rank(); ++axis) rows *= a.shape()[axis];
        return call.result(reshape(product(reshape(a, {rows, a.size(-1)}), b), shape));
    }
    return call.result(product(a, b));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const FunctionCall call("linear", {{"x", x}, {"weight", weight}, {"bias", bias}});
    call.require_defined({"x", "weight"});
    if (weight.rank() == 1 && x.rank() > 0 && x.size(-1) == weight.size(0)) {
        if (bias.defined()) ops::require_shape("linear", "bias of a weight (in)", bias.shape(), {});
        const Tensor rows = linear(x, reshape(weight, {1, weight.size(0)}), bias.defined() ? reshape(bias, {1}) : bias);
        return call.result(without_axis(rows, -1));
    }
    if (weight.rank() != 2 || x.rank() == 0 || x.size(-1) != weight.size(1))
        throw ShapeError(
            fmt::format("linear: expected x of shape (..., in) and weight of shape (out, in), got {} and {}",
                        x.shape().str(), weight.shape().str()));
    if (bias.defined() && !(bias.shape() == Shape{weight.size(0)}))
        throw ShapeError(fmt::format("linear: expected bias ({}), got {}", weight.size(0), bias.shape().str()));
    if (x.rank() == 2) return call.result(linear_rows(x, weight, bias));
    Shape shape = x.shape();
    shape[shape.rank() - 1] = weight.size(0);
    std::int64_t rows = 1;
    for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.shape()[axis];
    return call.result(reshape(linear_rows(reshape(x, {rows, x.size(-1)}), weight, bias), shape));
}

}  // namespace declivity
