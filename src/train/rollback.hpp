// Layer 7, private. Snapshot of the state that steps change apart from parameters, to undo a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <declivity/nn/module.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::train {

/// Device copies of module buffers (running statistics), metric states and sums. Optimizers change nothing once the
/// guard has recorded a step; this state still changes, in that step and in those enqueued before the host checks.
class Rollback {
  public:
    /// @param always_changing tensors that each step changes; module buffers are copied once, and again before each
    /// step if they have changed since
    Rollback(const std::vector<Tensor>& buffers, const std::vector<Tensor>& always_changing, const Tensor& guard);

    /// Called before a step. Copies nothing once the guard has recorded a step. It can be captured.
    void save();
    /// Restores the tensors from before the recorded step, or from before the last save().
    void restore();

  private:
    struct Snapshot {
        Tensor tensor, copy;
        std::uint64_t version = 0;  // version of the tensor's memory at the first copy
        bool changes = false;
    };
    [[nodiscard]] std::size_t find_changed();
    void add(const Tensor& tensor, bool changes);

    std::vector<Snapshot> snapshots_;
    Tensor guard_;
    ops::MultiTensor words_{2};
};

}  // namespace declivity::train
