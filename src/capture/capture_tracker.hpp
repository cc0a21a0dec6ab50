// Layer 5, private. Host-side state that a captured step depends on, checked and restored around each replay.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/tensor/tensor.hpp>

#include "runtime/capture.hpp"
#include "tensor/tensor_observer.hpp"

namespace declivity::detail {

/// Tensors used by a captured step, and the gradients that the step left in them. Owned by the command list, so that it
/// keeps no memory alive longer than that.
class CaptureTracker final : public TensorObserver {
  public:
    /// Tracker of the CapturedStep that this thread is capturing; null if there is none.
    static CaptureTracker* current();
    /// Creates the tracker of a capture.
    static std::shared_ptr<CaptureTracker> attach(Capture& capture);

    void uses(const std::shared_ptr<TensorState>& tensor) override;
    void reads_grad(const std::shared_ptr<TensorState>& leaf) override;
    void writes_grad(const std::shared_ptr<TensorState>& leaf) override;
    void value_replaced(const std::shared_ptr<TensorState>& tensor) override;
    [[nodiscard]] bool allows_hooks() const override { return hooks_allowed; }
    bool hooks_allowed = true;

    /// Inputs of the step, while it runs.
    std::span<const Tensor> step_inputs = {};
    /// Returns whether `value` is an input, which is a different tensor in each call.
    [[nodiscard]] bool is_input(const Capture& capture, const ops::LazyArray& value) const;

    /// Called at the end of the step.
    void close();
    /// Returns whether the step called assign() on a tensor that existed before it.
    [[nodiscard]] bool assigned() const noexcept { return assigned_; }
    /// Returns whether a tensor that existed before the step, and is not passed as an input, shares the memory of an
    /// input.
    [[nodiscard]] bool inputs_aliased(std::uint64_t capture, const std::vector<Tensor>& inputs) const;
    /// Returns whether the step leaves a gradient in memory of these buffers: the leaf would keep that of the first
    /// call.
    [[nodiscard]] bool leaves_gradient_in(const std::vector<Buffer>& inputs) const;
    /// Returns whether the step leaves a gradient that requires a gradient.
    [[nodiscard]] bool leaves_graph() const;
    /// Returns whether all tracked state is unchanged since before the step.
    [[nodiscard]] bool is_unchanged() const;
    /// Sets the gradients of leaves that the step set.
    void restore() const;

  private:
    struct UsedTensor {
        std::weak_ptr<TensorState> tensor;
        const void* value;
        bool requires_grad;
        std::pair<std::size_t, int> hooks;  // count, and number of the last one: later hooks have larger numbers
        ops::LazyArray retained = {};       // set at the end of the step, so that its address is not reused
    };
    struct Grad {
        std::weak_ptr<TensorState> leaf;
        bool read = false, written = false;        // read: before it was written
        std::weak_ptr<TensorState> previous = {};  // empty if there was none
        bool existed = false;
        Tensor final_grad = {};
    };
    Grad& grad_of(const std::shared_ptr<TensorState>& leaf);

    bool assigned_ = false;  // by the step itself
    // Vectors, since each replay iterates over them; the maps give the index of each tensor while the step runs.
    std::vector<UsedTensor> used_tensors_;
    std::vector<Grad> grads_;
    std::unordered_map<const TensorState*, std::size_t> used_indices_, grad_indices_;
};

}  // namespace declivity::detail
