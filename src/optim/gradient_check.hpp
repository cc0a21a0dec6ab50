// Layer 4, private. A look at all gradients before an optimizer changes a parameter.
#pragma once

#include <span>
#include <vector>

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::optim {

/// Sets a guard (ops/finite.hpp) when a gradient of some parameters has an element that is infinite or NaN. It enqueues
/// and returns; the tables of places that it keeps are sent again only where a gradient moved.
class GradientCheck {
  public:
    /// Parameters without a gradient, and those of other devices than the guard, are left out.
    void operator()(std::span<const Tensor> parameters, const Tensor& guard);

  private:
    struct Lists {
        DType dtype;
        ops::MultiTensor tensors{1};
    };
    std::vector<Lists> lists_;  // one for each type
};

}  // namespace declivity::optim
