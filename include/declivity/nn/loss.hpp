// Floor 4. Losses as objects, for whoever takes "an output and a target to a scalar", such as the trainer.
#pragma once

#include <declivity/tensor/functions.hpp>

namespace declivity::nn {

/// declivity::cross_entropy with these options.
struct CrossEntropyLoss {
    CrossEntropyOptions options = {};
    Tensor operator()(const Tensor& logits, const Tensor& labels) const { return cross_entropy(logits, labels, options); }
};

/// declivity::mse_loss with this reduction.
struct MSELoss {
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x, const Tensor& target) const { return mse_loss(x, target, reduction); }
};

/// declivity::bce_with_logits with this reduction.
struct BCEWithLogitsLoss {
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& logits, const Tensor& target) const { return bce_with_logits(logits, target, reduction); }
};

}  // namespace declivity::nn
