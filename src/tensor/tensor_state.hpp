// Layer 3, private. State behind a Tensor handle, and nodes of the autograd graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/function.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/tensor.hpp>

#include "ops/support/sharing.hpp"

namespace declivity::detail {

struct GradNode;
struct Follower;

using Hook = std::function<Tensor(const Tensor&)>;
using Hooks = std::vector<std::pair<int, Hook>>;
using PostAccumulateHooks = std::vector<std::pair<int, std::function<void(Tensor&)>>>;

struct TensorState {
    ops::LazyArray value;
    bool requires_grad = false;               // leaves only
    Tensor grad = {};                         // guarded by lock_tensor()
    Hooks hooks = {};                         // of a leaf; the hooks of other tensors are in their node
    PostAccumulateHooks after_grad = {};      // of a leaf
    std::shared_ptr<GradNode> node = {};      // gradient function; null for a leaf
    std::size_t output = 0;                   // index of this tensor among the node's results
    std::shared_ptr<const char> shares = {};  // shared by all tensors that alias this memory; null if there is no other
    std::shared_ptr<std::vector<Follower>> followers = {};  // views made by x[...] (followers.hpp)

    ~TensorState();
};

/// Locks a tensor's `grad`, which several threads may add to, and its aliasing state; one of a fixed number of mutexes
/// per device. Nothing is launched while it is locked, and no user code is called, as destructors of rules do.
/// @throws DeviceError in a child process after fork(), where a thread that no longer exists may hold the lock
std::unique_lock<std::mutex> lock_tensor(const TensorState& tensor);
/// Replaces the tensor's gradient and releases the previous one.
void exchange_grad(TensorState& tensor, Tensor gradient);

/// Adds to `present`, the tensor's current or immediately previous gradient, in place; serialised per tensor.
void add_to_grad(const TensorState& tensor, Tensor present, const Tensor& gradient);

/// View for a kernel operand that may be undefined.
inline ops::View dense_or_none(const Tensor& tensor) { return tensor.defined() ? tensor.dense_view() : ops::View(); }
/// Marks two tensors as possibly sharing memory, now or once computed; in-place writes under a graph check this.
void share_memory(const Tensor& a, const Tensor& b);
/// Returns whether another live tensor may share its memory. Saved tensors, pending readers and followers do not count.
bool shares_memory(const TensorState& tensor);

/// True once any leaf of this process has had a hook: before that, backward does not look for hooks.
std::atomic<bool>& leaves_have_hooks();

/// Returns whether other handles refer to the tensor or its elements.
inline bool is_shared(const Tensor& tensor) { return ops::is_shared(tensor.state()) || ops::is_shared(tensor.value()); }

/// Value of a tensor, donated if this is the last handle, so that a result may be computed in place
/// (ops::evaluate_into).
inline ops::LazyArray release_value(Tensor tensor) {
    const bool unique = !ops::is_shared(tensor.state());
    return unique ? std::move(tensor.state()->value) : tensor.value();
}

/// Operand use of a weight: without a graph a leaf that requires a gradient is constant, so derived data (packed
/// weights) may be cached.
inline ops::OperandUse use_of(const Tensor& weight) {
    return !grad_enabled() && weight.requires_grad() && weight.is_leaf() ? ops::OperandUse::constant
                                                                         : ops::OperandUse::variable;
}

/// Target of a gradient: a result of another node, a leaf, or none.
struct Edge {
    std::shared_ptr<GradNode> node = {};
    std::size_t output = 0;
    std::shared_ptr<TensorState> leaf = {};
    [[nodiscard]] explicit operator bool() const noexcept { return node != nullptr || leaf != nullptr; }
};

struct OutputInfo {
    Shape shape;
    DType dtype;
    Device device;
    Hooks hooks = {};
};

/// A call of an elementwise function of one tensor.
struct Activation {
    ops::Function function;
    std::vector<Scalar> parameters;
};

/// One call of a differentiable function.
struct GradNode {
    std::string name;
    std::uint64_t sequence = 0;  // increases with each call: larger than those of all nodes it depends on
    std::vector<Edge> edges;     // one for each input
    std::vector<OutputInfo> outputs;
    GradientRule rule;  // empty once used
    RuleKind kind = RuleKind::opaque;
    std::optional<Activation> activation;
    std::function<std::vector<Tensor>()> recompute;  // instead of a rule: recomputes the function with its full graph
    ScopePath scope;                                 // module scope of the call

    ~GradNode();
};

/// Grad mode of this thread: whether functions record the autograd graph; cleared by NoGrad.
bool& grad_mode();

/// Sets a flag of this thread and restores it at the end.
class FlagScope {
  public:
    explicit FlagScope(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
    ~FlagScope() { flag_ = before_; }
    FlagScope(const FlagScope&) = delete;
    FlagScope& operator=(const FlagScope&) = delete;

  private:
    bool& flag_;
    bool before_;
};

/// Returns whether a checkpointed function is being recomputed for its gradients: side effects must not happen twice.
bool is_recomputing();

/// For functions that access a tensor before other checks.
inline void require_defined(std::string_view function, const Tensor& tensor) {
    if (!tensor.defined()) throw ValueError(std::string(function) + ": expected a tensor, got an undefined one");
}

/// `operand`, saved for a rule that needs it only for the gradient of `wanting`: empty if that requires none.
inline Saved saved_for(const Tensor& wanting, const Tensor& operand) {
    return wanting.defined() && wanting.requires_grad() ? Saved(operand) : Saved();
}

Edge edge_of(const Tensor& tensor);
std::uint64_t next_sequence();

}  // namespace declivity::detail
