// Layer 6, private. Checks gradients for NaN and infinity before an optimizer changes a parameter.
#pragma once

#include <span>
#include <vector>

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::optim {

/// Sets a guard (ops/finite.hpp) if a gradient of some parameters has an infinite or NaN element. Asynchronous; its
/// address tables are uploaded again only if a gradient moved.
class GradientCheck {
  public:
    /// Parameters without a gradient, and those on other devices than the guard, are skipped.
    void operator()(std::span<const Tensor> parameters, const Tensor& guard);

  private:
    struct Lists {
        DType dtype;
        ops::MultiTensor tensors{1};
    };
    std::vector<Lists> lists_;  // one per type
};

}  // namespace declivity::optim
