#include <declivity/ops/view.hpp>
#include <declivity/tensor/functions.hpp>

#include "reduction.hpp"

namespace declivity {

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
    ops::require_shape("bce_with_logits", "the target", target.view(), logits.shape());
    return detail::reduced(elementwise(Function::binary_cross_entropy, {logits, target}), reduction);
}

}  // namespace declivity
