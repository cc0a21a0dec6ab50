// Layer 4. Reverse-mode automatic differentiation (autograd): backward, and defining differentiable functions.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/tensor/grad_mode.hpp>  // IWYU pragma: export
#include <declivity/tensor/tensor.hpp>

namespace declivity {

namespace detail {
struct GradNode;
}

/// @addtogroup autograd
/// @{

struct GradOptions {
    std::vector<Tensor> output_gradients = {};  ///< one for each output; required for outputs of more than one element
    bool retain_graph = false;                  ///< keeps the graph for another backward
    /// Builds a graph of the backward pass itself, for higher-order gradients. Functions with an opaque backward
    /// (CustomFunction) still return their gradient; a backward through such a gradient throws Unsupported.
    bool create_graph = false;
    bool allow_unused = false;  ///< returns an undefined tensor for an input that the outputs do not depend on
};

/// Returns the gradients of the sum of `outputs` with respect to `inputs`; does not change any tensor's grad().
/// @throws ValueError when the outputs do not depend on an input (unless allow_unused), or the graph was freed
/// @throws Unsupported, naming function and layer, for a backward through a gradient that create_graph built, of a
/// function that is differentiable only once, as does backward(). The call with create_graph itself does not fail
DECLIVITY_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                       const GradOptions& options = {});
/// Gradient of one output with respect to one input.
template <std::derived_from<Tensor> Output, std::derived_from<Tensor> Input>
Tensor grad(const Output& output, const Input& input, const GradOptions& options = {}) {
    return grad(std::vector<Tensor>{output}, std::vector<Tensor>{input}, options)[0];
}

// ---- defining differentiable functions

class Saved;

namespace detail {
struct RuleCall;
}

/// Argument of a gradient function (backward rule).
class DECLIVITY_API GradientContext {
  public:
    /// Gradient of output `index`; zeros if nothing depends on it.
    [[nodiscard]] const Tensor& gradient(std::size_t index = 0) const;
    /// gradient() donated to the rule: if unshared, its memory is freed as soon as the rule releases it, and the
    /// pending operator that produces it can fuse the rule's functions as its epilogue.
    [[nodiscard]] Tensor release_gradient(std::size_t index = 0) const;
    [[deprecated("release_gradient")]] [[nodiscard]] Tensor take_gradient(std::size_t index = 0) const {
        return release_gradient(index);
    }
    /// True if the gradient of this input is needed; if not, the rule may leave it undefined.
    [[nodiscard]] bool needs(std::size_t input) const;

    /// Accumulates a gradient into a region of an input's gradient in place: for functions that read a region of a
    /// tensor (slice, select, gather), so that the gradients of T regions cost as much as the tensor, not T times that.
    /// The rule then leaves the input's gradient undefined. Not allowed if grad_enabled(): the rule must compose it of
    /// functions.
    /// @param region returns the region of a view of the input's shape
    void accumulate_region(std::size_t input, Tensor gradient, std::function<ops::View(const ops::View&)> region) const;
    [[deprecated("accumulate_region")]] void give_region(std::size_t input, Tensor gradient,
                                                         std::function<ops::View(const ops::View&)> region) const {
        accumulate_region(input, std::move(gradient), std::move(region));
    }

    /// Output `index` saved by Saved::result(), connected to the graph in grad mode: for rules that are differentiable
    /// themselves.
    [[nodiscard]] Tensor output(const Saved& saved, std::string_view function, std::size_t index = 0) const;

    /// For layer 4 only.
    explicit GradientContext(detail::RuleCall& call) : call_(&call) {}
    [[nodiscard]] detail::RuleCall& call() const { return *call_; }

  private:
    detail::RuleCall* call_;
};

/// Maps the gradients of the outputs to those of the inputs, in order; undefined for an input without gradient.
using GradientRule = std::function<std::vector<Tensor>(const GradientContext&)>;

/// `differentiable`: the rule is composed of differentiable functions of Tensors, so that it can be differentiated
/// itself. A backward through the gradient of an `opaque` rule throws Unsupported.
enum class RuleKind : std::uint8_t {
    opaque,
    differentiable,
    composed [[deprecated("RuleKind::differentiable")]] = differentiable
};

/// Attaches a gradient function to a result; every differentiable function ends with it. `inputs` may contain undefined
/// tensors. If no input requires a gradient, or grad mode is off, the rule is discarded.
DECLIVITY_API Tensor attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                     const ops::LazyArray& result, GradientRule rule, RuleKind kind = RuleKind::opaque);
/// Variant for several results.
DECLIVITY_API std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                                  const std::vector<ops::LazyArray>& results, GradientRule rule,
                                                  RuleKind kind = RuleKind::opaque);

/// A function of tensors, composed of differentiable functions.
using Decomposition = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

/// For a function that is a composition of others but has kernels of its own. A plain backward calls `rule`; with
/// GradOptions::create_graph the decomposition is differentiated instead, which makes the function differentiable to
/// any order. The inputs are saved for that.
/// @param decomposition maps the inputs to the results; must not read anything that may be written before the backward
DECLIVITY_API std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                                  const std::vector<ops::LazyArray>& results, GradientRule rule,
                                                  Decomposition decomposition);

/// True if grad mode is enabled and an input requires a gradient: only then a rule's values need to be saved.
DECLIVITY_API bool any_requires_grad(const std::vector<Tensor>& inputs);

/// A value saved for a gradient function: the elements, and for an input its position in the graph. An in-place write
/// under a graph, after which the tensor has another value, does not affect it; an overwrite of its memory is detected
/// by the version counter.
class DECLIVITY_API Saved {
  public:
    Saved() = default;
    Saved(const Tensor& input);  // NOLINT: a rule's capture list reads better with it
    ~Saved();
    Saved(const Saved&) = default;
    Saved(Saved&&) noexcept = default;
    Saved& operator=(const Saved&) = default;
    Saved& operator=(Saved&&) noexcept = default;
    /// Saves a result that is not a Tensor yet, or is the function's own: elements only, since the result owns the
    /// rule.
    static Saved result(const ops::LazyArray& value);
    /// @throws ValueError naming `function` when the elements were modified in place after they were saved
    [[nodiscard]] Tensor get(std::string_view function) const;
    /// The saved elements without the graph; empty if nothing was saved.
    [[nodiscard]] ops::LazyArray value(std::string_view function) const;
    /// True if there is a value that was not modified since.
    [[nodiscard]] bool is_unmodified() const;
    [[deprecated("is_unmodified")]] [[nodiscard]] bool intact() const { return is_unmodified(); }
    /// True if the tensor was a leaf that requires a gradient, and assign() has replaced its elements since.
    [[nodiscard]] bool reassigned() const;

  private:
    [[nodiscard]] std::uint64_t wanted_version() const;
    void require_intact(std::string_view function) const;
    ops::LazyArray value_;                    // elements at the time of saving: the tensor may have others later
    Tensor leaf_;                             // if it requires a gradient
    std::shared_ptr<detail::GradNode> node_;  // that produced it, unless it is a leaf
    std::size_t output_ = 0;
    std::optional<std::uint64_t> version_;  // none: elements that were not computed when saved
};

/// A custom differentiable function. Inputs and outputs are saved for `backward`. Its gradient cannot be differentiated
/// again (RuleKind::opaque); for one that can, see attach_backward().
struct DECLIVITY_API CustomFunction {
    std::string name;
    /// Computes the outputs; runs with grad mode off.
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> forward;
    /// Maps inputs, outputs and the gradients of the outputs to the gradients of the inputs (undefined for none).
    std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                      const std::vector<Tensor>& output_gradients)>
        backward;

    /// @throws ValueError later, from backward(), when `backward` returns another number of gradients than inputs,
    /// ShapeError when one has another shape than its input
    std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
};

// ---- deprecated names of version 0.1

using Composition [[deprecated("Decomposition")]] = Decomposition;
[[deprecated("any_requires_grad")]] inline bool recorded(const std::vector<Tensor>& inputs) {
    return any_requires_grad(inputs);
}
template <class Result, class... Rest>
[[deprecated("attach_backward")]] auto differentiable(std::string_view name, const std::vector<Tensor>& inputs,
                                                      const Result& result, GradientRule rule, Rest&&... rest) {
    return attach_backward(name, inputs, result, std::move(rule), std::forward<Rest>(rest)...);
}

/// @}

}  // namespace declivity
