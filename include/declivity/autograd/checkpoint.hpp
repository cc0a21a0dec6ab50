// Layer 4. Gradient (activation) checkpointing: recomputes parts of a network in backward instead of storing
// activations.
#pragma once

#include <functional>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup autograd
/// @{

using CheckpointedFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Calls `function` and saves only `inputs`; backward calls it again (Chen et al. 2016, Training deep nets with
/// sublinear memory cost). The recomputation samples the same random numbers, and batch normalisation does not count
/// the batch twice. Results and gradients of f32 and f64 are bit-identical to those without checkpointing; chains of
/// f16 and bf16 are rounded where they are stored, which differs (bit-identical with DECLIVITY_FUSION=0). `function`
/// must return tensors of the same shapes again and have no side effects (writes, seeds); what it refers to, such as
/// running statistics, must not change in between, and must live until backward, as the function does.
/// @throws exceptions of the function; from backward, ValueError when an input or a parameter was written or assigned
/// in between
[[nodiscard]] DECLIVITY_API std::vector<Tensor> checkpoint(const CheckpointedFunction& function,
                                                           const std::vector<Tensor>& inputs);
/// Variant for one tensor. For a module, replace `block(x)` by `checkpoint(std::ref(block), x)`.
[[nodiscard]] DECLIVITY_API Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x);

/// @}

}  // namespace declivity
