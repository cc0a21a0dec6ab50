#include <declivity/ops/view.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>

#include "halves.hpp"
#include "reduction.hpp"
#include "tensor_state.hpp"

namespace declivity {

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
    const FunctionCall call("bce_with_logits", {{"logits", logits}, {"target", target}}, {{"reduction", reduction}});
    call.require_defined({"logits", "target"});
    ops::require_shape("bce_with_logits", "the target", target.shape(), logits.shape());
    if (detail::both_half(logits, target))
        return call.result(
            bce_with_logits(detail::widened(logits), detail::widened(target), reduction).to(logits.dtype()));
    return call.result(detail::reduced(
        elementwise(Function::binary_cross_entropy, {logits, target}, {}, "bce_with_logits"), reduction));
}

}  // namespace declivity
