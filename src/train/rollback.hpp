// Layer 5, private. The state that steps change beside parameters, as it was before a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <declivity/nn/module.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

/// Copies, on the device, of buffers of modules (running statistics), states of metrics and sums. Optimizers change
/// nothing once a guard has noted a step; all of these still change, in the noted step and in those that were enqueued
/// behind it before the host looked.
class Rollback {
  public:
    /// @param always tensors that each step changes; buffers of modules are copied once, and again before each step if
    /// they have changed since
    Rollback(const std::vector<Tensor>& buffers, const std::vector<Tensor>& always, const Tensor& guard);

    /// Before a step. Copies nothing once the guard has noted a step. It can be recorded.
    void save();
    /// Gives the tensors their elements from before the step that was noted, or from before the last save().
    void restore();

  private:
    struct Kept {
        Tensor tensor, copy;
        std::uint64_t version = 0;  // of the tensor's memory when the first copy was made
        bool changes = false;
    };
    [[nodiscard]] std::size_t find_changed();
    void add(const Tensor& tensor, bool changes);

    std::vector<Kept> kept_;
    Tensor guard_;
    ops::MultiTensor words_{2};
};

}  // namespace declivity::train
