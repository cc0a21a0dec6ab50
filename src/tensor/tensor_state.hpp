// Layer 3, private. State behind a Tensor handle, and access to its elements.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/lazy_array.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/grad_mode.hpp>
#include <declivity/tensor/tensor.hpp>

#include "ops/support/sharing.hpp"
#include "access.hpp"

namespace declivity::detail {

struct GradNode;       // autograd/graph.hpp
struct DependentView;  // autograd/dependent_views.hpp

using Hook = std::function<Tensor(const Tensor&)>;
using Hooks = std::vector<std::pair<int, Hook>>;
using PostAccumulateHooks = std::vector<std::pair<int, std::function<void(Tensor&)>>>;

struct TensorState {
    ops::LazyArray value;
    bool requires_grad = false;                      // leaves only
    Tensor grad = {};                                // guarded by lock_tensor()
    Hooks hooks = {};                                // of a leaf; the hooks of other tensors are in their node
    PostAccumulateHooks post_accumulate_hooks = {};  // of a leaf
    std::shared_ptr<GradNode> node = {};             // gradient function; null for a leaf
    std::size_t output = 0;                          // index of this tensor among the node's results
    std::shared_ptr<const char> shares = {};  // shared by all tensors that alias this memory; null if there is no other
    std::shared_ptr<std::vector<DependentView>> dependent_views = {};  // views made by x[...] (dependent_views.hpp)

    ~TensorState();
};

/// Locks a tensor's `grad`, which several threads may add to, and its aliasing state; one of a fixed number of mutexes
/// per device. Nothing is launched while it is locked, and no user code is called, as destructors of rules do.
/// @throws DeviceError in a child process after fork(), where a thread that no longer exists may hold the lock
std::unique_lock<std::mutex> lock_tensor(const TensorState& tensor);
/// Replaces the tensor's gradient and releases the previous one.
void exchange_grad(TensorState& tensor, Tensor gradient);

/// Grad mode of this thread: whether functions record the autograd graph; cleared by NoGrad.
bool& grad_mode();

/// For functions that access a tensor before other checks.
inline void require_defined(std::string_view function, const Tensor& tensor) {
    if (!tensor.defined()) throw ValueError(std::string(function) + ": expected a tensor, got an undefined one");
}

/// @throws ValueError naming `function` for an undefined tensor
TensorState& checked_state(const std::shared_ptr<TensorState>& state, std::string_view function);
/// Value of a tensor, reported to the capture tracker.
const ops::LazyArray& access_value(const std::shared_ptr<TensorState>& state, std::string_view function);

/// @throws ShapeError if several elements share memory, as in an expanded tensor
void require_no_overlap(std::string_view function, const ops::View& view);
/// View for a kernel operand that may be undefined.
inline ops::View dense_or_none(const Tensor& tensor) { return tensor.defined() ? tensor.dense_view() : ops::View(); }
/// Marks two tensors as possibly sharing memory, now or once computed; in-place writes under a graph check this.
void share_memory(const Tensor& a, const Tensor& b);
/// Returns whether other handles refer to the tensor or its elements.
inline bool is_shared(const Tensor& tensor) {
    return ops::is_shared(state_of(tensor)) || ops::is_shared(tensor.value());
}

/// Value of a tensor, donated if this is the last handle, so that a result may be computed in place
/// (ops::evaluate_into).
inline ops::LazyArray release_value(Tensor tensor) {
    const bool unique = !ops::is_shared(state_of(tensor));
    return unique ? std::move(state_of(tensor)->value) : tensor.value();
}

/// Operand use of a weight: without a graph a leaf that requires a gradient is constant, so derived data (packed
/// weights) may be cached.
inline ops::OperandUse use_of(const Tensor& weight) {
    return !grad_enabled() && weight.requires_grad() && weight.is_leaf() ? ops::OperandUse::constant
                                                                         : ops::OperandUse::variable;
}

/// Elements of x; donated if x is not shared.
ops::LazyArray donated_elements(Tensor& x);
/// Memory with these elements, to be written in place: their own if it is unshared, otherwise a copy.
ops::View writable_view(const ops::LazyArray& x);

}  // namespace declivity::detail
