#include "rule_call.hpp"

#include <array>
#include <utility>

#include "graph.hpp"
#include "ops/support/sharing.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

const Tensor& GradientContext::gradient(std::size_t index) const { return call_->gradients[index]; }
Tensor GradientContext::release_gradient(std::size_t index) const { return std::exchange(call_->gradients[index], {}); }
bool GradientContext::needs(std::size_t input) const { return call_->needs[input]; }

Tensor GradientContext::output(const Saved& saved, std::string_view function, std::size_t index) const {
    Tensor out = saved.get(function);
    if (!grad_enabled() || !out.defined()) return out;
    out = Tensor(out.value());
    state_of(out)->node = call_->node;
    state_of(out)->output = index;
    return out;
}

ops::Expression detail::through_activation(const GradientContext& context, std::size_t input, const ops::Expression& g,
                                           const ops::Expression& elements) {
    RuleCall& call = context.call();
    if (call.activations[input] == nullptr) return {};
    const std::shared_ptr<GradNode>& node = *call.activations[input];
    const Activation& activation = *node->activation;
    if (ops::info(activation.function).gradient_info[0].needs_input[0]) return {};
    call.passed[input] = true;
    if (!call.retain_graph && !ops::is_shared(node)) node->rule = nullptr;
    return ops::Expression::gradient(activation.function, 0, g, std::array{ops::Expression()}, elements,
                                     activation.parameters);
}

void GradientContext::accumulate_region(std::size_t input, Tensor gradient,
                                        std::function<ops::View(const ops::View&)> region) const {
    if (needs(input)) call_->regions.push_back({input, std::move(gradient), std::move(region)});
}

}  // namespace declivity
