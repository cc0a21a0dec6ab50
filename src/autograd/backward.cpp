// Traversal of the graph: nodes from the latest to the earliest, each once all its gradients have been accumulated.
#include "backward.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "gradient_checks.hpp"
#include "gradient_sum.hpp"
#include "graph.hpp"
#include "leaf_gradients.hpp"
#include "requested_inputs.hpp"
#include "rule_call.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace detail {
namespace {

/// Accumulated gradients of one node that has not been visited.
struct Pending {
    std::shared_ptr<GradNode> node;
    std::vector<GradientSum> gradients;
};

class Backward {
  public:
    explicit Backward(const BackwardRequest& request) : request_(request), inputs_(request.inputs) {}

    std::vector<Tensor> run() {
        // Without create_graph the rules record no graph.
        std::optional<NoGrad> no_grad;
        if (!request_.create_graph) no_grad.emplace();
        start();
        if (!request_.accumulate) {
            std::vector<GradNode*> first;
            for (const auto& [sequence, pending] : pending_nodes_) first.push_back(pending.node.get());
            inputs_.find_paths(std::move(first), request_.stop_at_inputs);
        } else if (leaves_have_hooks()) {
            std::vector<Edge> outputs;
            for (const Tensor& output : request_.outputs) outputs.push_back(edge_of(output));
            leaves_.find_last_uses(outputs, 0, nullptr);
        }
        while (!pending_nodes_.empty()) {
            leaves_.release_completed(pending_nodes_.begin()->first);
            Pending pending = std::move(pending_nodes_.extract(pending_nodes_.begin()).mapped());
            visit(*pending.node, pending);
        }
        return finish();
    }

  private:
    [[nodiscard]] std::string_view caller() const { return request_.accumulate ? "backward" : "grad"; }

    /// Seeds the pass with the gradients of the outputs.
    void start() {
        if (request_.gradients.size() > request_.outputs.size())
            throw ValueError(fmt::format("{}: expected at most {} gradients, one for each output, got {}", caller(),
                                         request_.outputs.size(), request_.gradients.size()));
        for (std::size_t i = 0; i < request_.outputs.size(); ++i) {
            const Tensor& output = request_.outputs[i];
            if (!output.defined())
                throw ValueError(fmt::format("{}: expected a tensor, got an undefined one", caller()));
            const Edge edge = edge_of(output);
            if (!edge)
                throw ValueError(fmt::format(
                    "{}: expected a tensor that depends on one that requires a gradient, got one of shape {} "
                    "that does not (was it made under NoGrad, or detached?)",
                    caller(), output.shape().str()));
            Tensor gradient = i < request_.gradients.size() ? request_.gradients[i] : Tensor();
            if (!gradient.defined()) {
                if (output.numel() != 1)
                    throw ValueError(fmt::format(
                        "{}: expected a scalar, or a gradient of the output's shape, got a tensor of shape {} "
                        "without one",
                        caller(), output.shape().str()));
                gradient = ones_like(output);
            }
            check_gradient(caller(), gradient, {output.shape(), output.dtype(), output.device()});
            sum_of(edge).add(gradient);
        }
    }

    [[nodiscard]] bool needs(const Edge& edge) const {
        return edge && (request_.accumulate || inputs_.leads_to_input(edge));
    }

    GradientSum& sum_of(const Edge& edge) {
        if (edge.leaf) return leaves_.sum_of(edge.leaf);
        Pending& pending = pending_nodes_[edge.node->sequence];
        if (!pending.node) pending = {edge.node, std::vector<GradientSum>(edge.node->outputs.size())};
        return pending.gradients[edge.output];
    }

    void visit(GradNode& node, Pending& pending) {
        std::vector<Tensor> received;
        for (GradientSum& sum : pending.gradients) received.push_back(sum.take());
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            Tensor& gradient = received[i];
            if (gradient.defined()) apply_hooks(node.outputs[i].hooks, gradient);
            inputs_.record_gradient(node, i, gradient);
        }
        if (!request_.accumulate && !inputs_.leads_to_input(node)) return;
        if (!node.rule && !node.recompute)
            throw ValueError(fmt::format(
                "backward of {}: expected a graph, got one that an earlier backward freed; pass retain_graph to the "
                "first one to use it again",
                node.name));
        const ResumedScope resumed(node.scope);  // profiles and errors show the layer that called the function
        if (node.recompute) return visit_recomputed(node, received);
        for (std::size_t i = 0; i < node.outputs.size(); ++i)
            if (!received[i].defined())
                received[i] = zeros(node.outputs[i].shape, {node.outputs[i].dtype, node.outputs[i].device});
        std::vector<bool> needed;
        for (const Edge& edge : node.edges) needed.push_back(needs(edge));
        std::vector<const std::shared_ptr<GradNode>*> activations;
        for (const Edge& edge : node.edges) activations.push_back(passes_through(edge) ? &edge.node : nullptr);
        // Donated, so that the rule may release them, unless create_graph needs them.
        const std::vector<Tensor> incoming = request_.create_graph ? received : std::vector<Tensor>();
        RuleCall rule{.node = pending.node,
                      .gradients = std::move(received),
                      .needs = std::move(needed),
                      .activations = std::move(activations),
                      .retain_graph = request_.retain_graph};
        std::vector<Tensor> gradients = call(node, incoming, rule);
        if (!request_.retain_graph) node.rule = nullptr;
        for (std::size_t i = 0; i < node.edges.size(); ++i)
            if (rule.needs[i] && gradients[i].defined())
                sum_of(rule.passed[i] ? node.edges[i].node->edges.front() : node.edges[i]).add(gradients[i]);
        for (GradientRegion& region : rule.regions) {
            const Edge& edge = node.edges[region.input];
            sum_of(edge).add(std::move(region), target(edge));
        }
    }

    /// Recomputes a checkpointed function and continues through its graph, which is later than all remaining nodes:
    /// gradients are accumulated in the same order as without a checkpoint.
    void visit_recomputed(GradNode& node, const std::vector<Tensor>& gradients) {
        std::vector<Tensor> outputs;
        const std::uint64_t first_sequence = next_sequence();
        {
            const FlagScope enabled_grad_mode(grad_mode());
            outputs = node.recompute();
        }
        if (!request_.retain_graph) node.recompute = nullptr;
        std::vector<Edge> edges;
        for (const Tensor& output : outputs) edges.push_back(edge_of(output));
        leaves_.find_last_uses(edges, first_sequence, &node);
        if (!request_.accumulate) {
            std::vector<GradNode*> first;
            for (const Edge& edge : edges)
                if (edge.node) first.push_back(edge.node.get());
            inputs_.find_paths(std::move(first), request_.stop_at_inputs);
        }
        for (std::size_t i = 0; i < edges.size(); ++i)
            if (gradients[i].defined() && needs(edges[i])) sum_of(edges[i]).add(gradients[i]);
    }

    /// Returns whether the edge leads to an activation whose output gradient is not observed. Other contributions to
    /// that gradient may take the normal path, since an activation's gradient is linear in it.
    [[nodiscard]] bool passes_through(const Edge& edge) const {
        if (!edge.node || request_.create_graph || !edge.node->activation || !edge.node->rule) return false;
        return edge.node->outputs[edge.output].hooks.empty() && !inputs_.contains(*edge.node, edge.output);
    }

    std::vector<Tensor> call(GradNode& node, const std::vector<Tensor>& incoming, RuleCall& rule) {
        const bool opaque = request_.create_graph && node.kind == RuleKind::opaque;
        std::vector<Tensor> gradients;
        const FunctionScope scope(node.name, SpanKind::backward);
        {
            std::optional<NoGrad> no_grad;
            if (opaque) no_grad.emplace();
            gradients = node.rule(GradientContext(rule));
            if (opaque) assemble_partial_gradients(node, rule, gradients);
        }
        if (gradients.size() != node.edges.size())
            throw ValueError(fmt::format("backward of {}: expected {} gradients, one for each input, got {}", node.name,
                                         node.edges.size(), gradients.size()));
        for (std::size_t i = 0; i < gradients.size(); ++i)
            if (rule.needs[i] && gradients[i].defined()) check_target(node, i, gradients[i]);
        if (opaque)
            for (Tensor& gradient : gradients)
                if (gradient.defined()) gradient = not_differentiable(node, incoming, gradient);
        return gradients;
    }

    /// Assembles partial gradients, for a graph that includes them.
    static void assemble_partial_gradients(const GradNode& node, RuleCall& rule, std::vector<Tensor>& gradients) {
        for (GradientRegion& region : std::exchange(rule.regions, {})) {
            GradientSum sum;
            Tensor& gradient = gradients.at(region.input);
            if (gradient.defined()) sum.add(gradient);
            sum.add(std::move(region), target(node.edges[region.input]));
            gradient = sum.take();
        }
    }

    static void check_target(const GradNode& node, std::size_t input, const Tensor& gradient) {
        check_gradient([&] { return fmt::format("backward of {}, input {}", node.name, input); }, gradient,
                       target(node.edges[input]));
    }

    /// Attaches the gradient of an opaque rule to the graph so that a later backward through it is refused rather than
    /// silently wrong.
    static Tensor not_differentiable(const GradNode& node, const std::vector<Tensor>& incoming,
                                     const Tensor& gradient) {
        Tensor out(gradient.value());
        auto refusal = std::make_shared<GradNode>();
        refusal->name = fmt::format("gradient of {}", node.name);
        refusal->scope = node.scope;
        refusal->sequence = next_sequence();
        refusal->edges = node.edges;
        for (const Tensor& tensor : incoming) refusal->edges.push_back(edge_of(tensor));
        refusal->outputs.push_back({out.shape(), out.dtype(), out.device()});
        refusal->rule = [name = node.name](const GradientContext&) -> std::vector<Tensor> {
            throw Unsupported(
                fmt::format("backward: expected functions that are twice differentiable, got {}, which has no gradient "
                            "of its gradient",
                            name));
        };
        state_of(out)->node = std::move(refusal);
        return out;
    }

    std::vector<Tensor> finish() {
        leaves_.release_all();
        const std::vector<Tensor>& gradients = inputs_.gradients();
        for (std::size_t i = 0; i < gradients.size(); ++i)
            if (!gradients[i].defined() && !request_.allow_unused)
                throw ValueError(
                    fmt::format("grad: expected outputs that use input {}, got none; allow_unused returns an undefined "
                                "tensor for it",
                                i));
        return gradients;
    }

    const BackwardRequest& request_;
    RequestedInputs inputs_;
    LeafGradients leaves_{request_.accumulate, request_.create_graph, inputs_};
    std::map<std::uint64_t, Pending, std::greater<>>
        pending_nodes_;  // latest first: all contributions to a node come from later ones
};

}  // namespace

std::vector<Tensor> run_backward(const BackwardRequest& request) {
    const Span span("backward");
    return Backward(request).run();
}

}  // namespace detail

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
    return detail::run_backward({.outputs = outputs,
                                 .gradients = options.output_gradients,
                                 .inputs = inputs,
                                 .retain_graph = options.retain_graph || options.create_graph,
                                 .create_graph = options.create_graph,
                                 .allow_unused = options.allow_unused,
                                 .accumulate = false});
}

}  // namespace declivity
