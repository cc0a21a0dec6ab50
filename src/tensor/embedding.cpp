#include <declivity/ops/gather.hpp>

#include <limits>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "tensor_state.hpp"

namespace declivity {
namespace {

/// @param missing what stands in rows of numbers outside of the table
Tensor rows_of(const Tensor& numbers, const Tensor& weight, double missing);

/// Sums of the rows of x (N, D) by their numbers, (V, D).
Tensor summed(const Tensor& numbers, const Tensor& x, std::int64_t size) {
    const ops::View in = x.dense_view(), out = ops::View::make(in.device(), in.dtype, {size, in.shape[1]});
    ops::sum_rows("embedding", in, numbers.dense_view(), out);
    return differentiable(
        "embedding_gradient", {x}, out,
        [numbers = Saved(numbers)](const GradientContext& context) {
            return std::vector{rows_of(numbers.get("embedding"), context.gradient(), 0)};
        },
        RuleKind::composed);
}

Tensor rows_of(const Tensor& numbers, const Tensor& weight, double missing) {
    const ops::View table = weight.dense_view();
    const ops::View out = ops::View::make(table.device(), table.dtype, {numbers.numel(), table.shape[1]});
    ops::gather_rows("embedding", table, numbers.dense_view(), out, missing);
    return differentiable(
        "embedding", {weight}, out,
        [numbers = Saved(numbers), size = table.shape[0]](const GradientContext& context) {
            return std::vector{summed(numbers.get("embedding"), context.gradient(), size)};
        },
        RuleKind::composed);
}

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight) {
    const FunctionCall call("embedding", {{"indices", indices}, {"weight", weight}});
    call.require_defined({"indices", "weight"});
    ops::require_rank("embedding", "weight", weight.shape(), 2, "V, D");
    if (!is_floating(weight.dtype()))
        throw TypeError(
            fmt::format("embedding: wants f32, f64, f16 or bf16 as weight, got {}", name_of(weight.dtype())));
    if (indices.dtype() != DType::i32 && indices.dtype() != DType::i64)
        throw TypeError(fmt::format("embedding: wants indices of i32 or i64, got {} (convert with .to(DType::i64))",
                                    name_of(indices.dtype())));
    Shape shape = indices.shape();
    shape.push_back(weight.size(1));
    return call.result(
        reshape(rows_of(reshape(indices, {indices.numel()}), weight, std::numeric_limits<double>::quiet_NaN()), shape));
}

}  // namespace declivity
