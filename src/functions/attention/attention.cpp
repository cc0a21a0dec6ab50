#include <declivity/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "functions/support/axes.hpp"
#include "functions/support/dropout.hpp"
#include "ops/random/random.hpp"
#include "ops/support/work_split.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";
// Largest head dimension of the kernels: on SIMT devices the sums of a row are kept in registers.
constexpr std::int64_t kMaxHeadDimSimd = 256, kMaxHeadDimSimt = 128;

/// Inputs q (B, G H, Lq, D), k (B, H, Lk, D), v (B, H, Lk, E), the mask (B, G H, Lq, Lk) and the slopes (G H), which
/// may be undefined; returns y (B, Lq, G H, E).
std::vector<Tensor> decomposed(const std::vector<Tensor>& in, const ops::AttentionAttributes& parameters) {
    const Tensor &q = in[0], &mask = in[3], &slopes = in[4];
    const std::int64_t heads = in[1].size(1), group = heads == 0 ? 1 : q.size(1) / heads, queries = q.size(2),
                       keys = in[1].size(2);
    const Tensor k = group > 1 ? repeat_interleave(in[1], group, 1) : in[1],
                 v = group > 1 ? repeat_interleave(in[2], group, 1) : in[2];
    Tensor scores = matmul(q * parameters.scale, transpose(k, -1, -2));
    if (keys == 0) return {permute(matmul(scores, v), {0, 2, 1, 3})};  // zeros, but connected to the graph
    const TensorOptions index_options{DType::i64, q.device()};
    const Tensor distance = reshape(arange(0, keys, 1, index_options), {1, keys}) -
                            reshape(arange(0, queries, 1, index_options), {queries, 1});  // j - i
    if (slopes.defined())
        scores = scores - reshape(slopes, {q.size(1), 1, 1}) * abs(distance - parameters.shift).to(scores.dtype());
    if (mask.defined() && mask.dtype() != DType::boolean) scores = scores + mask;
    Tensor visible = (distance >= parameters.low) & (distance <= parameters.high);
    if (mask.defined() && mask.dtype() == DType::boolean) visible = visible & mask;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    scores = where(visible, scores, -infinity);
    const Tensor has_visible = amax(scores.detach(), {-1}, true) != -infinity;
    Tensor weights = where(has_visible, softmax(where(has_visible, scores, 0), -1), 0);
    if (parameters.dropped > 0) weights = detail::apply_dropout(weights, parameters.dropped, parameters.random);
    return {permute(matmul(weights, v), {0, 2, 1, 3})};
}

ops::View rows_of(const Tensor& x) {
    const ops::View view = x.view();
    return view.shape[3] <= 1 || view.strides[3] == 1 ? view : x.clone().view();
}

/// (B, L, heads, E) as (B, heads, L, E).
ops::View heads_first(ops::View view) {
    std::swap(view.shape[1], view.shape[2]);
    std::swap(view.strides[1], view.strides[2]);
    return view;
}

/// Attention computed by the fused kernels.
Tensor fused_attention(const std::vector<Tensor>& in, const ops::AttentionAttributes& parameters) {
    const auto operands = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                             const Tensor& slopes) {
        return ops::AttentionOperands{rows_of(q), rows_of(k), rows_of(v), mask.defined() ? mask.view() : ops::View{},
                                      detail::dense_or_none(slopes)};
    };
    const ops::AttentionResults forward = ops::attention(operands(in[0], in[1], in[2], in[3], in[4]), parameters);
    return attach_backward(
        kName, in, {forward.y},
        [q = Saved(in[0]), k = Saved(in[1]), v = Saved(in[2]), mask = Saved(in[3]), slopes = Saved(in[4]), parameters,
         operands, y = forward.y, log_sums = forward.log_sums](const GradientContext& context) {
            const Tensor gradient = context.gradient(0);
            const ops::View g = gradient.view(),
                            grad_rows = g.shape[3] <= 1 || g.strides[3] == 1 ? g : gradient.dense_view();
            const auto [grad_q, grad_k, grad_v] = ops::attention_backward(
                operands(q.get(kName), k.get(kName), v.get(kName), mask.get(kName), slopes.get(kName)), parameters,
                y.view(), log_sums.view(), heads_first(grad_rows));
            const auto with_heads_first = [](const ops::LazyArray& value) {
                return permute(Tensor(value), {0, 2, 1, 3});
            };
            return std::vector{with_heads_first(grad_q), with_heads_first(grad_k), with_heads_first(grad_v), Tensor(),
                               Tensor()};
        },
        [parameters](const std::vector<Tensor>& inputs) { return decomposed(inputs, parameters); })[0];
}

bool has_kernel(const std::vector<Tensor>& in) {
    const Tensor &q = in[0], &v = in[2];
    const std::int64_t max_head_dim =
        ops::kernel_style_of(q.device()) == KernelStyle::simd ? kMaxHeadDimSimd : kMaxHeadDimSimt;
    // f64 accumulators would take twice the registers.
    if (ops::kernel_style_of(q.device()) == KernelStyle::simt && q.dtype() == DType::f64) return false;
    return !detail::by_decomposition() && q.numel() > 0 && v.numel() > 0 && q.size(3) <= max_head_dim &&
           v.size(3) <= max_head_dim && !any_requires_grad({in[3], in[4]});
}

/// Leading dimensions of the operands, those before (L, D): batch, and heads.
struct LeadingDims {
    Shape batch;
    std::int64_t queries = 1, keys = 1;  ///< number of heads
    bool has_heads = false;              ///< otherwise the operands are matrices
};

Shape leading_dims(const Tensor& x, int last) {
    Shape shape;
    for (int axis = 0; axis + last < x.rank(); ++axis) shape.push_back(x.size(axis));
    return shape;
}

/// Returns whether `shape` broadcasts to `target`.
bool broadcasts_to(const Shape& shape, const Shape& target) {
    if (shape.rank() > target.rank()) return false;
    for (int from_end = 1; from_end <= shape.rank(); ++from_end)
        if (shape[shape.rank() - from_end] != 1 && shape[shape.rank() - from_end] != target[target.rank() - from_end])
            return false;
    return true;
}

LeadingDims leading_dims(const Tensor& query, const Tensor& key, const Tensor& value, bool grouped) {
    const int last = grouped ? 3 : 2;
    if (!grouped && query.rank() > 2 && key.rank() > 2 && key.size(-3) > 1 && query.size(-3) > key.size(-3))
        throw ShapeError(fmt::format(
            "{}: expected the same number of heads in query and key, or enable_gqa for groups of heads, got {} "
            "and {}",
            kName, query.shape().str(), key.shape().str()));
    const auto broadcast_leading = [&](const Tensor& a, const Shape& b) {
        return broadcast_shapes(kName, leading_dims(a, last), b);
    };
    LeadingDims leading{.batch = broadcast_leading(query, broadcast_leading(key, leading_dims(value, last)))};
    if (grouped) {
        for (const auto& [what, operand] :
             {std::pair{"query", &query}, std::pair{"key", &key}, std::pair{"value", &value}})
            if (operand->rank() < 3)
                throw ShapeError(fmt::format("{}: expected {} of shape (..., heads, L, D) with enable_gqa, got {}",
                                             kName, what, operand->shape().str()));
        leading.has_heads = true;
        leading.queries = query.size(-3);
        leading.keys = key.size(-3);
        if (value.size(-3) != leading.keys || leading.keys == 0 || leading.queries % leading.keys != 0)
            throw ShapeError(fmt::format(
                "{}: expected numbers of heads of key and value that divide that of query, got {}, {} and {}", kName,
                leading.keys, value.size(-3), leading.queries));
    } else if (leading.batch.rank() > 0) {
        leading.has_heads = true;
        leading.queries = leading.keys = leading.batch[-1];
        Shape rest;
        for (int axis = 0; axis + 1 < leading.batch.rank(); ++axis) rest.push_back(leading.batch[axis]);
        leading.batch = rest;
    }
    return leading;
}

/// x (..., rows, columns) as (B, heads, rows, columns).
Tensor expand_operand(const Tensor& x, const LeadingDims& leading, std::int64_t heads, std::int64_t rows,
                      std::int64_t columns) {
    const Shape target = detail::append_dims(leading.batch, {heads, rows, columns});
    const Tensor expanded = x.shape() == target ? x : broadcast_to(x, target);
    return target.rank() == 4 ? expanded : reshape(expanded, {leading.batch.numel(), heads, rows, columns});
}

void check(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionParameters& options) {
    ops::require_real(kName, "query", query.dtype());
    for (const auto& [what, operand] :
         {std::pair{"query", &query}, std::pair{"key", &key}, std::pair{"value", &value}}) {
        if (operand->rank() < 2)
            throw ShapeError(
                fmt::format("{}: expected {} of shape (..., L, D), got {}", kName, what, operand->shape().str()));
        ops::require_alike(kName, "query", query.dtype(), query.device(), what, operand->dtype(), operand->device());
    }
    if (key.size(-1) != query.size(-1))
        throw ShapeError(fmt::format("{}: expected key and query of the same size along the last axis, got {} and {}",
                                     kName, key.shape().str(), query.shape().str()));
    if (value.size(-2) != key.size(-2))
        throw ShapeError(fmt::format("{}: expected as many values as keys along axis -2, got {} and {}", kName,
                                     value.shape().str(), key.shape().str()));
    if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
        throw ValueError(fmt::format("{}: expected dropout_p in [0, 1], got {}", kName, options.dropout_p));
    if (options.window && *options.window < 1)
        throw ValueError(fmt::format("{}: expected a window of at least 1, got {}", kName, *options.window));
    if (options.scale && !std::isfinite(*options.scale))
        throw ValueError(fmt::format("{}: expected a finite scale, got {}", kName, *options.scale));
    const Tensor& mask = options.attn_mask;
    if (mask.defined() && mask.dtype() != DType::boolean)
        ops::require_alike(kName, "query", query.dtype(), query.device(), "attn_mask", mask.dtype(), mask.device());
    if (options.generator && !(options.generator->device() == query.device()))
        throw DeviceError(fmt::format("{}: expected a generator on query's device, '{}', got one on '{}'", kName,
                                      query.device().name(), options.generator->device().name()));
}

ops::AttentionAttributes parameters_of(const Tensor& query, const AttentionParameters& options) {
    ops::AttentionAttributes parameters;
    const auto width = static_cast<double>(std::max<std::int64_t>(1, query.size(-1)));
    parameters.scale = options.scale.value_or(1 / std::sqrt(width));
    parameters.shift = options.query_offset;
    if (options.window) {
        parameters.low = options.query_offset - *options.window + 1;
        parameters.high = options.query_offset + *options.window - 1;
    }
    if (options.is_causal) parameters.high = options.query_offset;
    parameters.dropped = options.dropout_p;
    return parameters;
}

template <class T>
CallAttribute or_none(std::string_view name, const std::optional<T>& value) {
    return value ? CallAttribute(name, *value) : CallAttribute(name, "None");
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionParameters& options) {
    const FunctionCall call(kName,
                            {{"query", query},
                             {"key", key},
                             {"value", value},
                             {"attn_mask", options.attn_mask},
                             {"alibi_slopes", options.alibi_slopes}},
                            {{"dropout_p", options.dropout_p},
                             {"is_causal", options.is_causal},
                             or_none("scale", options.scale),
                             {"enable_gqa", options.enable_gqa},
                             or_none("window", options.window),
                             {"query_offset", options.query_offset}});
    call.require_defined({"query", "key", "value"});
    check(query, key, value, options);
    const LeadingDims leading = leading_dims(query, key, value, options.enable_gqa);
    const std::int64_t queries = query.size(-2), keys = key.size(-2), width = value.size(-1);
    const Shape result_shape = leading.has_heads ? detail::append_dims(leading.batch, {leading.queries, queries, width})
                                                 : Shape{queries, width};
    const Tensor &mask = options.attn_mask, &slopes = options.alibi_slopes;
    if (slopes.defined()) {
        ops::require_shape(kName, "alibi_slopes", slopes.shape(), {leading.queries});
        ops::require_alike(kName, "query", query.dtype(), query.device(), "alibi_slopes", slopes.dtype(),
                           slopes.device());
    }
    if (const Shape scores = detail::append_dims(leading.batch, {leading.queries, queries, keys});
        mask.defined() && !broadcasts_to(mask.shape(), scores))
        throw ShapeError(fmt::format("{}: expected attn_mask that broadcasts to {}, got {}", kName, scores.str(),
                                     mask.shape().str()));
    const std::vector<Tensor> in{
        expand_operand(query, leading, leading.queries, queries, query.size(-1)),
        expand_operand(key, leading, leading.keys, keys, key.size(-1)),
        expand_operand(value, leading, leading.keys, keys, width),
        mask.defined() ? expand_operand(mask, leading, leading.queries, queries, keys) : Tensor(), slopes};
    ops::AttentionAttributes parameters = parameters_of(query, options);
    if (parameters.dropped > 0) {
        const DType compute = compute_type(query.dtype());
        const Shape weights{in[0].size(0), leading.queries, queries, keys};
        parameters.random = options.generator ? options.generator->take(kName, compute, weights)
                                              : ops::take_random(query.device(), compute, weights.numel());
    }
    const Tensor y =
        has_kernel(in) ? fused_attention(in, parameters)
                       : detail::decomposed_in_f32(
                             [&](const std::vector<Tensor>& inputs) { return decomposed(inputs, parameters); }, in)[0];
    const Tensor rows = permute(y, {0, 2, 1, 3});
    return call.result(result_shape.rank() == 4 ? rows : reshape(rows, result_shape));
}

}  // namespace declivity
