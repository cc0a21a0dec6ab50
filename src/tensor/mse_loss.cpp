#include <declivity/ops/view.hpp>
#include <declivity/tensor/functions.hpp>

#include "reduction.hpp"
#include "tensor_state.hpp"

namespace declivity {

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
    detail::require_defined("mse_loss", x);
    detail::require_defined("mse_loss", target);
    // A target that broadcasts is nearly always a mistake: (N) against (N, 1) would compare every pair.
    ops::require_shape("mse_loss", "the target", target.view(), x.shape());
    return detail::reduced(elementwise(Function::squared_difference, {x, target}), reduction);
}

}  // namespace declivity
