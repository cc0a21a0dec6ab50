// Layer 3. Gradient checkpointing: parts of a network that are computed twice, so that what lies between need not be
// kept.
#pragma once

#include <functional>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

using CheckpointedFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Calls `function` and keeps nothing for its gradients but `inputs`; backward calls it again (Chen et al. 2016,
/// Training deep nets with sublinear memory cost). The second call draws the same random numbers, and batch
/// normalisation does not count the batch twice. Results and gradients of f32 and f64 are the same to the bit as
/// without; chains of f16 and bf16 are rounded where they are stored, which is not at the same places
/// (DECLIVITY_FUSION=0: to the bit). `function` must give tensors of the same shapes again, must do nothing else
/// (write, set seeds), and what it refers to, running statistics for instance, must not change between. It is kept
/// until then, and what it refers to has to live as long.
/// @throws what the function throws; from backward, ValueError when an input or a parameter was written or assigned in
/// between
[[nodiscard]] DECLIVITY_API std::vector<Tensor> checkpoint(const CheckpointedFunction& function,
                                                           const std::vector<Tensor>& inputs);
/// The same for one tensor. `checkpoint(std::ref(block), x)` in place of `block(x)`, for a module.
[[nodiscard]] DECLIVITY_API Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x);

}  // namespace declivity
