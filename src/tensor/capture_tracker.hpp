// Layer 3, private. What the host has to know and do about a step that is enqueued without it.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/tensor/tensor.hpp>

#include "runtime/capture.hpp"

namespace declivity::detail {

struct TensorState;

/// Tensors that a recorded step has used, and the gradients that it has left in them. Held by the recording, so that it
/// holds no memory longer than that.
class CaptureTracker {
  public:
    /// Those of the step that this thread records by way of a Recorded; null where there is none.
    static CaptureTracker* current();
    /// Begins them.
    static std::shared_ptr<CaptureTracker> attach(Capture& capture);

    void uses(const std::shared_ptr<TensorState>& tensor);
    void reads_grad(const std::shared_ptr<TensorState>& leaf);
    void writes_grad(const std::shared_ptr<TensorState>& leaf);
    /// A tensor of the step's own was written in place under a graph: it stands for another value now.
    void takes_value(const std::shared_ptr<TensorState>& tensor);
    /// Whether hooks of tensors may be called, though a replay will not.
    bool allows_hooks = true;

    /// What the step is given, while it runs.
    std::span<const Tensor> given = {};
    /// Whether these are elements of an input, which is another tensor in each call.
    [[nodiscard]] bool of_input(const Capture& capture, const ops::LazyArray& value) const;

    /// At the end of the step.
    void close();
    /// Whether the step itself gave a tensor that was there before other elements by assign().
    [[nodiscard]] bool assigned() const noexcept { return assigned_; }
    /// Whether a tensor from before the step, not given to it as an input, lies in the memory of an input.
    [[nodiscard]] bool inputs_under_other_names(std::uint64_t capture, const std::vector<Tensor>& inputs) const;
    /// Whether the step leaves a gradient that lies in memory of these: a leaf would go on having that of the first
    /// call.
    [[nodiscard]] bool leaves_gradient_in(const std::vector<Buffer>& inputs) const;
    /// Whether the step leaves a gradient with a graph.
    [[nodiscard]] bool leaves_graph() const;
    /// Whether all is as it was before the step, as far as the step could tell.
    [[nodiscard]] bool holds() const;
    /// Gives leaves the gradients that the step gave them.
    void restore() const;

  private:
    struct Used {
        std::weak_ptr<TensorState> tensor;
        const void* value;
        bool requires_grad;
        std::pair<std::size_t, int> hooks;  // how many, and the last one's number: later ones have larger numbers
        ops::LazyArray held = {};  // from the end of the step on, so that nothing else comes to lie at its address
    };
    struct Grad {
        std::weak_ptr<TensorState> leaf;
        bool read = false, written = false;      // read: before it was written
        std::weak_ptr<TensorState> before = {};  // empty: there was none
        bool had = false;
        Tensor after = {};
    };
    Grad& grad_of(const std::shared_ptr<TensorState>& leaf);

    bool assigned_ = false;  // by the step itself
    // Lists, since each replay goes through them; while the step runs, with the place of each tensor in them.
    std::vector<Used> used_;
    std::vector<Grad> grads_;
    std::unordered_map<const TensorState*, std::size_t> place_in_used_, place_in_grads_;
};

}  // namespace declivity::detail
