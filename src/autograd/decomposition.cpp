#include "decomposition.hpp"

#include <algorithm>
#include <utility>

#include "backward.hpp"
#include "graph.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

namespace detail {
namespace {

thread_local bool decomposing = false;

/// Gradients of a decomposition of the saved inputs, for a rule that is differentiated again.
std::vector<Tensor> gradients_of(std::string_view name, const Decomposition& decomposition,
                                 const std::vector<Saved>& inputs, std::size_t result_count,
                                 const GradientContext& context) {
    std::vector<Tensor> saved, required_inputs, incoming;
    std::vector<std::size_t> input_indices;
    for (const Saved& input : inputs) saved.push_back(input.get(name));
    for (std::size_t i = 0; i < saved.size(); ++i) {
        if (!context.needs(i)) continue;
        // Attached as a separate node: the graph behind one input, which may be another input, is not this function's.
        saved[i] = attach_backward(
            name, {saved[i]}, saved[i].value(),
            [](const GradientContext& input_context) { return std::vector{input_context.gradient()}; },
            RuleKind::differentiable);
        input_indices.push_back(i);
        required_inputs.push_back(saved[i]);
    }
    std::vector<Tensor> outputs;
    const std::vector<Tensor> results = decomposed_in_f32(decomposition, saved);
    for (std::size_t i = 0; i < result_count; ++i) {
        if (!results.at(i).requires_grad()) continue;
        outputs.push_back(results[i]);
        incoming.push_back(context.gradient(i));
    }
    std::vector<Tensor> gradients(inputs.size());
    if (outputs.empty()) return gradients;
    const std::vector<Tensor> input_gradients = run_backward({.outputs = outputs,
                                                              .gradients = incoming,
                                                              .inputs = required_inputs,
                                                              .retain_graph = true,
                                                              .create_graph = true,
                                                              .allow_unused = true,
                                                              .accumulate = false,
                                                              .stop_at_inputs = true});
    for (std::size_t i = 0; i < input_indices.size(); ++i) gradients[input_indices[i]] = input_gradients[i];
    return gradients;
}

}  // namespace

DecompositionScope::DecompositionScope() : previous_(std::exchange(decomposing, true)) {}
DecompositionScope::~DecompositionScope() { decomposing = previous_; }
bool by_decomposition() { return decomposing; }

std::vector<Tensor> decomposed_in_f32(const Decomposition& decomposition, const std::vector<Tensor>& inputs) {
    const auto first_16bit =
        std::ranges::find_if(inputs, [](const Tensor& x) { return x.defined() && is_16bit_float(x.dtype()); });
    if (first_16bit == inputs.end()) return decomposition(inputs);
    std::vector<Tensor> upcast_inputs;
    for (const Tensor& input : inputs) upcast_inputs.push_back(upcast(input));
    std::vector<Tensor> results = decomposition(upcast_inputs);
    for (Tensor& result : results)
        if (result.defined() && is_floating(result.dtype())) result = result.to(first_16bit->dtype());
    return results;
}

Tensor recomputed_in_f32(std::string_view name, const Tensor& x, const std::function<Tensor(const Tensor&)>& function) {
    if (!is_16bit_float(x.dtype())) return function(x);
    Decomposition decomposition = [function](const std::vector<Tensor>& in) { return std::vector{function(in[0])}; };
    if (!any_requires_grad({x})) return decomposed_in_f32(decomposition, {x})[0];
    const Tensor result = [&] {
        const NoGrad no_grad;
        return decomposed_in_f32(decomposition, {x.detach()})[0];
    }();
    return attach_backward(
        name, {x}, result.value(),
        [name = std::string(name), decomposition = std::move(decomposition),
         x = Saved(x)](const GradientContext& context) {
            if (grad_enabled()) return gradients_of(name, decomposition, {x}, 1, context);
            const Tensor in = Tensor(x.value(name)).set_requires_grad();
            const EnableGrad enable_grad;
            return run_backward({.outputs = decomposed_in_f32(decomposition, {in}),
                                 .gradients = {context.gradient()},
                                 .inputs = {in},
                                 .retain_graph = false,
                                 .create_graph = false,
                                 .allow_unused = true,
                                 .accumulate = false,
                                 .stop_at_inputs = true});
        },
        RuleKind::differentiable);
}

}  // namespace detail

std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                    const std::vector<ops::LazyArray>& results, GradientRule rule,
                                    Decomposition decomposition) {
    if (detail::by_decomposition())
        return detail::decomposed_in_f32(decomposition, inputs);  // pending kernels of `results` are never launched
    if (!any_requires_grad(inputs))
        return attach_backward(name, inputs, results, std::move(rule), RuleKind::differentiable);
    std::vector<Saved> saved(inputs.begin(), inputs.end());
    return attach_backward(
        name, inputs, results,
        [name = std::string(name), rule = std::move(rule), decomposition = std::move(decomposition),
         saved = std::move(saved), count = results.size()](const GradientContext& context) {
            return grad_enabled() ? detail::gradients_of(name, decomposition, saved, count, context) : rule(context);
        },
        RuleKind::differentiable);
}

}  // namespace declivity
