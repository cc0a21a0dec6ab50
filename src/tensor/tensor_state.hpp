// Layer 3, private. What a Tensor points to, and the nodes of the graph.
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
    Hooks hooks = {};                         // of a leaf; other tensors' stand in their node
    PostAccumulateHooks after_grad = {};      // of a leaf
    std::shared_ptr<GradNode> node = {};      // what made it
    std::size_t output = 0;                   // which result of the node it is
    std::shared_ptr<const char> shares = {};  // one for all tensors that share memory; none where no other was made
    std::shared_ptr<std::vector<Follower>> followers = {};  // what x[...] gave (followers.hpp)

    ~TensorState();
};

/// Guards a tensor's `grad`, which several threads may add to, and what it shares memory with: one of a few for each
/// device. Under it nothing is launched, and no user's code called, as destructors of rules do.
/// @throws DeviceError in a child that fork() made, where it may be held by a thread that does not exist
std::unique_lock<std::mutex> lock_tensor(const TensorState& tensor);
/// Gives the tensor another gradient and lets go of the one before.
void exchange_grad(TensorState& tensor, Tensor gradient);

/// Adds to a gradient, which is the tensor's or was just before, in place. One thread at a time does so for a tensor.
void add_to_grad(const TensorState& tensor, Tensor present, const Tensor& gradient);

/// What kernels read of an operand that may be undefined.
inline ops::View dense_or_none(const Tensor& tensor) { return tensor.defined() ? tensor.dense_view() : ops::View(); }
/// Two tensors lie in the same memory, or will, or may: whoever writes the one under a graph must know.
void share_memory(const Tensor& a, const Tensor& b);
/// Whether another tensor that still lives may share its memory. What saved its elements, or will read them, does not
/// count, nor do followers.
bool shares_memory(const TensorState& tensor);

/// Whether a leaf of this process ever had a hook: until then no backward need look for one.
std::atomic<bool>& leaves_have_hooks();

/// Whether others have handles to the tensor, or its elements.
inline bool is_shared(const Tensor& tensor) { return ops::is_shared(tensor.state()) || ops::is_shared(tensor.value()); }

/// What is given away may be computed in the place where it goes (ops::store). Others that hold the tensor keep it.
inline ops::LazyArray release_value(Tensor tensor) {
    const bool unique = !ops::is_shared(tensor.state());
    return unique ? std::move(tensor.state()->value) : tensor.value();
}

/// A parameter that is used where nothing is recorded is used as it is again: operators may keep what they make of it.
inline ops::OperandUse use_of(const Tensor& weight) {
    return !grad_enabled() && weight.requires_grad() && weight.is_leaf() ? ops::OperandUse::constant
                                                                         : ops::OperandUse::variable;
}

/// Where a gradient goes: to a result of another node, to a leaf, or nowhere.
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
    std::uint64_t sequence = 0;  // later calls have larger numbers, so a node comes before all that it depends on
    std::vector<Edge> edges;     // one for each input
    std::vector<OutputInfo> outputs;
    GradientRule rule;  // empty once it was used up
    RuleKind kind = RuleKind::opaque;
    std::optional<Activation> activation;
    std::function<std::vector<Tensor>()> again;  // in place of a rule: calls the function once more, recorded in full
    ScopePath scope;                             // of the call

    ~GradNode();
};

/// Whether functions of this thread record a graph: what NoGrad sets.
bool& grad_mode();

/// Sets a flag of this thread, and puts it back at the end.
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

/// Whether a checkpointed function is called again for its gradients: what it did beside its results it must not do
/// twice.
bool running_again();

/// For functions that take a tensor apart before they do anything else.
inline void require_defined(std::string_view function, const Tensor& tensor) {
    if (!tensor.defined()) throw ValueError(std::string(function) + ": expected a tensor, got an undefined one");
}

/// `operand`, kept for a rule that needs it for the gradient of `wanting` alone: nothing when that wants none.
inline Saved saved_for(const Tensor& wanting, const Tensor& operand) {
    return wanting.defined() && wanting.requires_grad() ? Saved(operand) : Saved();
}

Edge edge_of(const Tensor& tensor);
std::uint64_t next_sequence();

}  // namespace declivity::detail
