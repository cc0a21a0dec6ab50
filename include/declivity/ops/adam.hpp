// Floor 2. One step of Adam or AdamW over many tensors.
#pragma once

#include <declivity/ops/multi_tensor.hpp>

namespace declivity::ops {

struct AdamParameters {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
    bool decoupled = false;  ///< AdamW: decay the parameter, not the gradient
};

/// For each element, with lr = progress[0] and t = progress[1], the number of this step from 1:
///     decoupled: p -= lr * weight_decay * p, otherwise g += weight_decay * p
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     p -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// (Kingma, Ba 2015, algorithm 1; Loshchilov, Hutter 2019, algorithm 2.)
/// @param tensors roles: parameters, gradients, m, v
/// @param progress, guard as for sgd_step
DECLIVITY_API void adam_step(const MultiTensor& tensors, const View& progress, const View& guard,
                             const AdamParameters& parameters);

}  // namespace declivity::ops
