// Floor 2. One step of stochastic gradient descent over many tensors.
#pragma once

#include <declivity/ops/multi_tensor.hpp>

namespace declivity::ops {

struct SgdParameters {
    double momentum = 0;
    double dampening = 0;
    double weight_decay = 0;
    bool nesterov = false;
};

/// For each element, with lr = progress[0] and t = progress[1], the number of this step from 1:
///     g += weight_decay * p;  m = t == 1 ? g : momentum * m + (1 - dampening) * g;
///     p -= lr * (nesterov ? g + momentum * m : m)
/// (Sutskever et al. 2013, in the form that PyTorch uses.) Without momentum there is no m.
/// @param tensors roles: parameters, gradients and, with momentum, m
/// @param progress dense, 2 elements of the tensors' type, on the device
/// @param guard i32, see finite.hpp: nothing is written while it is set
DECLIVITY_API void sgd_step(const MultiTensor& tensors, const View& progress, const View& guard,
                            const SgdParameters& parameters);

}  // namespace declivity::ops
