// Layer 3. Reverse-mode differentiation: recording, backward, and how a differentiable function is made.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

namespace detail {
struct GradNode;
}

/// While one lives, functions of this thread record no graph.
class DECLIVITY_API NoGrad {
  public:
    [[nodiscard("a graph is left out while it lives: give it a name")]] NoGrad();
    ~NoGrad();
    NoGrad(const NoGrad&) = delete;
    NoGrad& operator=(const NoGrad&) = delete;

  private:
    bool before_;
};

using NoGradGuard = NoGrad;

/// While one lives, functions of this thread record graphs again, within NoGrad.
class DECLIVITY_API EnableGrad {
  public:
    [[nodiscard("graphs are recorded while it lives: give it a name")]] EnableGrad();
    ~EnableGrad();
    EnableGrad(const EnableGrad&) = delete;
    EnableGrad& operator=(const EnableGrad&) = delete;

  private:
    bool before_;
};

/// Whether functions of this thread record a graph.
DECLIVITY_API bool grad_enabled();

struct GradOptions {
    std::vector<Tensor> output_gradients = {};  ///< one for each output; needed for outputs of more than one element
    bool retain_graph = false;                  ///< keep the graph for another backward
    /// Record the backward itself, for gradients of gradients. Functions of a user's own that have none
    /// (CustomFunction) give their gradient all the same: what is refused, as Unsupported, is the backward that goes
    /// through that.
    bool create_graph = false;
    bool allow_unused = false;  ///< an input that the outputs do not depend on gives an undefined tensor
};

/// Gradients of the sum of `outputs` with respect to `inputs`; leaves every tensor's grad() alone.
/// @throws ValueError when an input plays no part (unless allow_unused), or the graph is used up
/// @throws Unsupported, naming function and layer, when it goes through a gradient that create_graph recorded, of a
/// function that can be differentiated
/// but once; backward() does the same. The call with create_graph does not fail
DECLIVITY_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                       const GradOptions& options = {});
/// Of one output for one input.
template <std::derived_from<Tensor> Output, std::derived_from<Tensor> Input>
Tensor grad(const Output& output, const Input& input, const GradOptions& options = {}) {
    return grad(std::vector<Tensor>{output}, std::vector<Tensor>{input}, options)[0];
}

// ---- making differentiable functions

class Saved;

namespace detail {
struct RuleCall;
}

/// What a gradient rule is given.
class DECLIVITY_API GradientContext {
  public:
    /// The gradient of output `index`; zeros when nothing depended on it.
    [[nodiscard]] const Tensor& gradient(std::size_t index = 0) const;
    /// The same, given away: where nobody else keeps it, its memory goes back as soon as the rule lets go, and an
    /// operator that it still waits for may take up what the rule does with it.
    [[nodiscard]] Tensor take_gradient(std::size_t index = 0) const;
    /// Whether the gradient for this input is wanted; if not, the rule may leave it undefined.
    [[nodiscard]] bool needs(std::size_t input) const;

    /// Gives the gradient for a part of an input, which is added to that part in place: for functions that take a part
    /// of a tensor (slice, select, gather), so that T parts of one tensor cost as much as the tensor, not T times that.
    /// The rule leaves the input's gradient undefined then. Not where grad_enabled(): there a rule composes it.
    /// @param region gives the part of a view of the input's shape
    void give_region(std::size_t input, Tensor gradient, std::function<ops::View(const ops::View&)> region) const;

    /// What the rule kept of output `index` by Saved::result(), as a part of the graph where one is recorded: for rules
    /// that are differentiated again.
    [[nodiscard]] Tensor output(const Saved& kept, std::string_view function, std::size_t index = 0) const;

    /// For layer 3 itself.
    explicit GradientContext(detail::RuleCall& call) : call_(&call) {}
    [[nodiscard]] detail::RuleCall& call() const { return *call_; }

  private:
    detail::RuleCall* call_;
};

/// From the gradients of the outputs to those of the inputs, in their order; undefined where none flows.
using GradientRule = std::function<std::vector<Tensor>(const GradientContext&)>;

/// Whether a rule consists of differentiable functions of Tensors, so that it can be differentiated itself. A backward
/// through the gradient that an opaque one gave is refused as Unsupported.
enum class RuleKind : std::uint8_t { opaque, differentiable };

/// Joins a result to the graph: the way every differentiable function ends. `inputs` may hold undefined tensors.
/// When no input requires a gradient, or recording is off, the rule is dropped.
DECLIVITY_API Tensor attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                     const ops::LazyArray& result, GradientRule rule, RuleKind kind = RuleKind::opaque);
/// The same for several results.
DECLIVITY_API std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                                  const std::vector<ops::LazyArray>& results, GradientRule rule,
                                                  RuleKind kind = RuleKind::opaque);

/// A function of tensors, made of others that are differentiable.
using Decomposition = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

/// For a function that is a composition of others, and whose results come from kernels of its own. A plain backward
/// calls `rule`; one that is recorded (GradOptions::create_graph) differentiates the composition instead, which makes
/// the function differentiable to any order. The inputs are kept for that.
/// @param composition from the inputs to the results; must not look at anything that is written meanwhile
DECLIVITY_API std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                                  const std::vector<ops::LazyArray>& results, GradientRule rule,
                                                  Decomposition decomposition);

/// Whether a function of these inputs would be recorded: only then a rule's values need to be kept.
DECLIVITY_API bool any_requires_grad(const std::vector<Tensor>& inputs);

/// A value that a gradient rule keeps: the elements, and for an input where it stands in the graph. A tensor that takes
/// another value later (writing in place under a graph) leaves it alone; that its memory was overwritten it notices.
class DECLIVITY_API Saved {
  public:
    Saved() = default;
    Saved(const Tensor& input);  // NOLINT: a rule's capture list reads better with it
    ~Saved();
    Saved(const Saved&) = default;
    Saved(Saved&&) noexcept = default;
    Saved& operator=(const Saved&) = default;
    Saved& operator=(Saved&&) noexcept = default;
    /// For a result that is not a Tensor yet, or is the function's own: its elements alone, since the result owns the
    /// rule.
    static Saved result(const ops::LazyArray& value);
    /// @throws ValueError naming `function` when the elements were written after they were saved
    [[nodiscard]] Tensor get(std::string_view function) const;
    /// The same, as elements outside of the graph; empty where nothing was saved.
    [[nodiscard]] ops::LazyArray value(std::string_view function) const;
    /// Whether there is a value, and it was not written since.
    [[nodiscard]] bool intact() const;
    /// Whether the tensor was a leaf that requires a gradient, and was given other elements by assign() since.
    [[nodiscard]] bool reassigned() const;

  private:
    [[nodiscard]] std::uint64_t wanted_version() const;
    void require_intact(std::string_view function) const;
    ops::LazyArray value_;                    // its elements then: the tensor may stand for others later
    Tensor leaf_;                             // that requires a gradient
    std::shared_ptr<detail::GradNode> node_;  // that made it, if it is no leaf
    std::size_t output_ = 0;
    std::optional<std::uint64_t> version_;  // none: of elements that were not computed then
};

/// A differentiable function of a user's own. The inputs and outputs are kept for `backward`. Its gradient cannot be
/// differentiated again (RuleKind::opaque); for one that can, see attach_backward().
struct DECLIVITY_API CustomFunction {
    std::string name;
    /// Computes the outputs; runs without recording.
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> forward;
    /// From inputs, outputs and the gradients of the outputs to the gradients of the inputs (undefined for none).
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                      const std::vector<Tensor>& output_gradients)>
        backward;

    /// @throws ValueError later, from backward(), when `backward` gives another number of gradients than inputs,
    /// ShapeError when one has another shape than its input
    std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
};

}  // namespace declivity
