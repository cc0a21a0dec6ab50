// Floor 4. Losses as objects, with their options; a Trainer takes them as they are.
#pragma once

#include <declivity/tensor/functions.hpp>

namespace declivity::nn {

/// declivity::cross_entropy with these options: nn::CrossEntropyLoss loss({.label_smoothing = 0.1}).
class CrossEntropyLoss {
  public:
    explicit CrossEntropyLoss(const CrossEntropyOptions& options = {}) : options_(options) {}
    Tensor operator()(const Tensor& logits, const Tensor& labels) const {
        return cross_entropy(logits, labels, options_);
    }

  private:
    CrossEntropyOptions options_;
};

/// declivity::mse_loss.
class MSELoss {
  public:
    explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
    Tensor operator()(const Tensor& x, const Tensor& target) const { return mse_loss(x, target, reduction_); }

  private:
    Reduction reduction_;
};

/// declivity::bce_with_logits.
class BCEWithLogitsLoss {
  public:
    explicit BCEWithLogitsLoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
    Tensor operator()(const Tensor& logits, const Tensor& target) const {
        return bce_with_logits(logits, target, reduction_);
    }

  private:
    Reduction reduction_;
};

}  // namespace declivity::nn
