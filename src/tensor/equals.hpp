// Layer 3, private. Gradients of a number that several elements may be.
#pragma once

#include <string_view>
#include <vector>

#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>

namespace declivity::detail {

/// `value` (), an element of x, with the gradient shared by all elements that are equal to it, or are NaN as it is.
inline Tensor shared_by_equals(std::string_view name, const Tensor& x, const Tensor& value) {
    if (!any_requires_grad({x})) return value;
    return attach_backward(
        name, {x}, value.value(),
        [name, x = Saved(x), value = Saved::result(value.value())](const GradientContext& context) {
            const Tensor in = x.get(name).detach(), chosen = value.get(name).detach();
            const Tensor equals = logical_or(equal(in, chosen), logical_and(isnan(in), isnan(chosen)));
            const DType wide = compute_type(in.dtype());
            const Tensor share = context.gradient().to(wide) / sum(equals).to(wide);
            return std::vector{where(equals, share, 0).to(in.dtype())};
        },
        RuleKind::differentiable);
}

}  // namespace declivity::detail
