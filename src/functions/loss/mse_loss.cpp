#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/tensor/function_call.hpp>

#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction, const Tensor& weight) {
    const FunctionCall call("mse_loss", {{"x", x}, {"target", target}, {"weight", weight}}, {{"reduction", reduction}});
    call.require_defined({"x", "target"});
    // A target that broadcasts is nearly always a mistake: (N) and (N, 1) would compare every pair.
    ops::require_shape("mse_loss", "the target", target.shape(), x.shape());
    if (weight.defined()) {
        const DType type = detail::pair_type("mse_loss", x, target, {weight});
        ops::require_shape("mse_loss", "the weight", weight.shape(), x.shape());
        const Tensor losses = square(detail::upcast(x) - detail::upcast(target));
        return call.result(detail::weighted(losses, detail::upcast(weight), reduction).to(type));
    }
    // Squares in f16 overflow early, although their mean may not.
    if (detail::both_16bit(x, target))
        return call.result(mse_loss(detail::upcast(x), detail::upcast(target), reduction).to(x.dtype()));
    return call.result(
        detail::reduced(elementwise(Function::squared_difference, {x, target}, {}, "mse_loss"), reduction));
}

}  // namespace declivity
