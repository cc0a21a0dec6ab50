// Layer 3, private. Observer of what a thread does with tensors while it captures a step.
#pragma once

#include <memory>

#include "runtime/capture.hpp"

namespace declivity::detail {

struct TensorState;

class TensorObserver {
  public:
    /// Observer of the step that this thread is capturing; null if there is none.
    static TensorObserver* current();
    /// Makes `observer` the one of a capture, which owns it from now on.
    static void attach(Capture& capture, const std::shared_ptr<TensorObserver>& observer);

    TensorObserver() = default;
    virtual ~TensorObserver() = default;
    TensorObserver(const TensorObserver&) = delete;
    TensorObserver& operator=(const TensorObserver&) = delete;

    virtual void uses(const std::shared_ptr<TensorState>& tensor) = 0;
    virtual void reads_grad(const std::shared_ptr<TensorState>& leaf) = 0;
    virtual void writes_grad(const std::shared_ptr<TensorState>& leaf) = 0;
    /// A tensor created by the step was written in place under a graph, and now has another value.
    virtual void value_replaced(const std::shared_ptr<TensorState>& tensor) = 0;
    /// True if tensor hooks are allowed, although a replay does not call them.
    [[nodiscard]] virtual bool allows_hooks() const = 0;
};

}  // namespace declivity::detail
