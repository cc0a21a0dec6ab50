#include "alias.hpp"

#include <utility>

#include "ops/engine/lazy_array.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {

Tensor alias(std::string_view name, const Tensor& x, const ops::LazyArray& result, GradientRule rule) {
    Tensor out = attach_backward(name, {x}, result, std::move(rule), RuleKind::differentiable);
    const ops::LazyArray& from = state_of(x)->value;
    const bool copied = from.computed() && result.computed() && !(from.view().buffer == result.view().buffer);
    if (!copied) share_memory(x, out);
    return out;
}

}  // namespace declivity::detail
