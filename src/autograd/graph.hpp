// Layer 4, private. The autograd graph: nodes, one for each call of a differentiable function, and the edges to the
// producers of their inputs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/function.hpp>
#include <declivity/tensor/tensor.hpp>

#include "tensor/tensor_state.hpp"

namespace declivity::detail {

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

/// Releases a node, and those that nothing else owns, without recursion: a graph may be a chain of a million nodes.
void release_node(std::shared_ptr<GradNode> node);

Edge edge_of(const Tensor& tensor);
std::uint64_t next_sequence();

/// `operand`, saved for a rule that needs it only for the gradient of `dependent`: empty if that requires none.
inline Saved saved_for(const Tensor& dependent, const Tensor& operand) {
    return dependent.defined() && dependent.requires_grad() ? Saved(operand) : Saved();
}

/// True once any leaf of this process has had a hook: before that, backward does not look for hooks.
std::atomic<bool>& leaves_have_hooks();

/// Adds to `current`, the tensor's current or immediately previous gradient, in place; serialised per tensor.
void add_to_grad(const TensorState& tensor, Tensor current, const Tensor& gradient);

/// Sets a flag of this thread and restores it at the end.
class FlagScope {
  public:
    explicit FlagScope(bool& flag) : flag_(flag), previous_(std::exchange(flag, true)) {}
    ~FlagScope() { flag_ = previous_; }
    FlagScope(const FlagScope&) = delete;
    FlagScope& operator=(const FlagScope&) = delete;

  private:
    bool& flag_;
    bool previous_;
};

/// Returns whether a checkpointed function is being recomputed for its gradients: side effects must not happen twice.
bool is_recomputing();

}  // namespace declivity::detail
