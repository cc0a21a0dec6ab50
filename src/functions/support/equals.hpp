// Layer 5, private. Gradient of a value that several elements may equal.
#pragma once

#include <string_view>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>

namespace declivity::detail {

/// Returns `value` (), an element of x; its gradient is shared by all elements equal to it, or NaN if it is NaN.
inline Tensor shared_by_equals(std::string_view name, const Tensor& x, const Tensor& value) {
    if (!any_requires_grad({x})) return value;
    return attach_backward(
        name, {x}, value.value(),
        [name, x = Saved(x), value = Saved::result(value.value())](const GradientContext& context) {
            const Tensor in = x.get(name).detach(), selected = value.get(name).detach();
            const Tensor equals = logical_or(equal(in, selected), logical_and(isnan(in), isnan(selected)));
            const DType compute = compute_type(in.dtype());
            const Tensor share = context.gradient().to(compute) / sum(equals).to(compute);
            return std::vector{where(equals, share, 0).to(in.dtype())};
        },
        RuleKind::differentiable);
}

}  // namespace declivity::detail
