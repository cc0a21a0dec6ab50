// Functions that change the shape: reshape, flatten, permute, transpose, expand, concat, pad. Most return a view of the
// same memory.
#include <algorithm>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/alias.hpp"
#include "functions/support/broadcast.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/lazy_array.hpp"
#include "tensor/promotion.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::alias;

namespace {

Shape completed(const Shape& from, const Shape& to) {
    Shape out = to;
    int unknown = -1;
    std::int64_t known = 1;
    for (int axis = 0; axis < to.rank(); ++axis) {
        if (to[axis] == -1 && unknown < 0) unknown = axis;
        else known *= to[axis];
    }
    if (unknown >= 0 && known > 0 && from.numel() % known == 0) out[unknown] = from.numel() / known;
    const bool negative = std::ranges::any_of(out, [](std::int64_t size) { return size < 0; });
    if (negative || out.numel() != from.numel())
        throw ShapeError(fmt::format("reshape: expected a shape of {} elements (as {}){}, got {}", from.numel(),
                                     from.str(), std::ranges::count(to, -1) > 1 ? ", one of its sizes -1 at most" : "",
                                     to.str()));
    return out;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
    const FunctionCall call("reshape", {{"x", x}}, {{"shape", shape}});
    call.require_defined({"x"});
    ops::refuse_in_formula();
    const Shape target = completed(x.shape(), shape);
    if (target == x.shape()) return call.result(x);
    return call.result(
        alias("reshape", x, ops::reshaped(x.value(), target), [x_shape = x.shape()](const GradientContext& context) {
            return std::vector{reshape(context.gradient(), x_shape)};
        }));
}

Tensor flatten(const Tensor& x, std::int64_t first, std::int64_t last) {
    const FunctionCall call("flatten", {{"x", x}}, {{"first", first}, {"last", last}});
    call.require_defined({"x"});
    const int from = normalize_axis("flatten", first, x.rank()), to = normalize_axis("flatten", last, x.rank());
    if (from > to)
        throw ValueError(fmt::format("flatten: expected a first axis not after the last, got {} and {}", first, last));
    Shape shape;
    std::int64_t merged = 1;
    for (int i = 0; i < x.rank(); ++i) {
        if (i < from || i > to) shape.push_back(x.shape()[i]);
        else merged *= x.shape()[i];
        if (i == to) shape.push_back(merged);
    }
    return call.result(reshape(x, shape));
}

Tensor permute(const Tensor& x, const Dims& order) {
    const FunctionCall call("permute", {{"x", x}}, {{"order", order}});
    call.require_defined({"x"});
    Dims axes = order;
    bool once = order.rank() == x.rank();
    for (int i = 0; i < axes.rank(); ++i) {
        axes[i] = normalize_axis("permute", order[i], x.rank());
        once = once && std::find(axes.begin(), axes.begin() + i, axes[i]) == axes.begin() + i;
    }
    if (!once)
        throw ShapeError(fmt::format("permute: expected each axis of {} once, got {}", x.shape().str(), order.str()));
    const ops::LazyArray result =
        ops::view_of(x.value(), [&](const ops::View& view) { return ops::permuted(view, axes); });
    Dims inverse = axes;
    for (int i = 0; i < axes.rank(); ++i) inverse[static_cast<int>(axes[i])] = i;
    return call.result(alias("permute", x, result, [inverse](const GradientContext& context) {
        return std::vector{permute(context.gradient(), inverse)};
    }));
}

Tensor transpose(const Tensor& x, std::int64_t axis_a, std::int64_t axis_b) {
    const FunctionCall call("transpose", {{"x", x}}, {{"axis_a", axis_a}, {"axis_b", axis_b}});
    call.require_defined({"x"});
    if (x.rank() == 0 && axis_a >= -2 && axis_a <= 0 && axis_b >= -1 && axis_b <= 0) return call.result(x);
    const int a = normalize_axis("transpose", axis_a, x.rank()), b = normalize_axis("transpose", axis_b, x.rank());
    Dims order;
    for (int i = 0; i < x.rank(); ++i) order.push_back(i == a ? b : i == b ? a : i);
    return call.result(permute(x, order));
}

Tensor expand(const Tensor& x, const Shape& shape) {
    const FunctionCall call("expand", {{"x", x}}, {{"shape", shape}});
    call.require_defined({"x"});
    ops::refuse_in_formula();
    Shape target = shape;
    for (int i = 1; i <= std::min(shape.rank(), x.rank()); ++i)
        if (target[-i] == -1) target[-i] = x.shape()[-i];
    if (target == x.shape()) return call.result(x);
    return call.result(
        alias("expand", x,
              ops::view_of(x.value(), [&](const ops::View& view) { return ops::expanded("expand", view, target); }),
              [x_shape = x.shape()](const GradientContext& context) {
                  return std::vector{detail::sum_to(context.gradient(), x_shape)};
              }));
}

namespace {

Tensor concatenated(const char* name, std::vector<Tensor> parts, std::int64_t axis) {
    const CallInput inputs[] = {{"parts", std::span<const Tensor>(parts)}};
    const CallAttribute attributes[] = {{"axis", axis}};
    const FunctionCall call("concat", name, inputs, attributes);
    if (parts.empty()) throw ValueError(fmt::format("{}: expected at least one tensor, got none", name));
    call.require_defined({"parts"});
    // PyTorch: a tensor of shape [0] can be concatenated with any.
    const auto is_empty = [](const Tensor& part) { return part.rank() == 1 && part.numel() == 0; };
    if (!std::ranges::all_of(parts, is_empty) &&
        std::ranges::any_of(parts, [](const Tensor& part) { return part.rank() > 1; }))
        std::erase_if(parts, is_empty);
    const int along = normalize_axis(name, axis, parts[0].rank());
    Shape shape = parts[0].shape();
    std::vector<std::int64_t> sizes;
    shape[along] = 0;
    for (const Tensor& part : parts) {
        Shape other = part.shape();
        ops::require_same_device(name, parts[0].device(), part.device());
        if (other.rank() == shape.rank()) other[along] = shape[along];
        if (!(other == shape))
            throw ShapeError(fmt::format("{}: expected parts that differ along axis {} only, got {} and {}", name,
                                         along, parts[0].shape().str(), part.shape().str()));
        sizes.push_back(part.shape()[along]);
        shape[along] += part.shape()[along];
    }
    detail::Promotion promotion;
    for (const Tensor& part : parts) promotion.add(part);
    const DType dtype = *promotion.result();
    for (Tensor& part : parts) part = part.to(dtype);
    const ops::View result = ops::View::make(parts[0].device(), dtype, shape);
    const bool needs_graph = any_requires_grad(parts);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < parts.size(); start += sizes[i++])
        ops::evaluate_into(name, detail::release_value(needs_graph ? parts[i] : std::exchange(parts[i], {})),
                           ops::sliced(result, along, start, sizes[i]));
    if (!needs_graph) return call.result(Tensor(result));
    return call.result(attach_backward(
        name, parts, result,
        [along, sizes](const GradientContext& context) {
            std::vector<Tensor> gradients;
            std::int64_t from = 0;
            for (std::size_t i = 0; i < sizes.size(); from += sizes[i++])
                gradients.push_back(context.needs(i) ? slice(context.gradient(), along, from, from + sizes[i])
                                                     : Tensor());
            return gradients;
        },
        RuleKind::differentiable));
}

}  // namespace

Tensor concat(std::vector<Tensor> parts, std::int64_t axis) { return concatenated("concat", std::move(parts), axis); }
Tensor cat(std::vector<Tensor> parts, std::int64_t axis) { return concatenated("cat", std::move(parts), axis); }

Tensor pad(const Tensor& x, const Dims& before, const Dims& after, Scalar value) {
    const FunctionCall call("pad", {{"x", x}}, {{"before", before}, {"after", after}, {"value", value}});
    call.require_defined({"x"});
    Shape shape = x.shape();
    bool fits = before.rank() == x.rank() && after.rank() == x.rank();
    for (int axis = 0; fits && axis < x.rank(); ++axis) {
        shape[axis] += std::min<std::int64_t>(before[axis], 0) + std::min<std::int64_t>(after[axis], 0);
        fits = shape[axis] >= 0;
    }
    if (!fits)
        throw ShapeError(
            fmt::format("pad: expected a number before and after each of {} axes, which crop no more than its size, "
                        "got {} and {} for {}",
                        x.rank(), before.str(), after.str(), x.shape().str()));
    if (!(shape == x.shape())) {  // cropped first
        Tensor inner = x;
        Dims pad_front = before, pad_back = after;
        for (int axis = 0; axis < x.rank(); ++axis) {
            const std::int64_t first = std::max<std::int64_t>(-before[axis], 0);
            inner = slice(inner, axis, first, first + shape[axis]);
            pad_front[axis] = std::max<std::int64_t>(before[axis], 0);
            pad_back[axis] = std::max<std::int64_t>(after[axis], 0);
        }
        return call.result(pad(inner, pad_front, pad_back, value));
    }
    for (int axis = 0; axis < x.rank(); ++axis) shape[axis] += before[axis] + after[axis];
    const ops::View result = ops::View::make(x.device(), x.dtype(), shape);
    ops::fill(result, value, "pad");
    ops::View inner = result;
    for (int axis = 0; axis < x.rank(); ++axis) inner = ops::sliced(inner, axis, before[axis], x.shape()[axis]);
    ops::copy(x.view(), inner);
    return call.result(attach_backward(
        "pad", {x}, result,
        [before, x_shape = x.shape()](const GradientContext& context) {
            Tensor g = context.gradient();
            for (int axis = 0; axis < x_shape.rank(); ++axis)
                g = slice(g, axis, before[axis], before[axis] + x_shape[axis]);
            return std::vector{g};
        },
        RuleKind::differentiable));
}

}  // namespace declivity
