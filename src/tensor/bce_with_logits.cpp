#include <declivity/ops/view.hpp>
#include <declivity/tensor/functions.hpp>

#include "reduction.hpp"
#include "tensor_state.hpp"

namespace declivity {

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
    detail::require_defined("bce_with_logits", logits);
    detail::require_defined("bce_with_logits", target);
    ops::require_shape("bce_with_logits", "the target", target.view(), logits.shape());
    return detail::reduced(elementwise(Function::binary_cross_entropy, {logits, target}), reduction);
}

}  // namespace declivity
