#include <declivity/autograd/checkpoint.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "graph.hpp"
#include "ops/random/random.hpp"

namespace declivity {

namespace detail {
namespace {
thread_local bool recomputing = false;

/// Edges from the call to earlier nodes and to leaves, each once.
std::vector<Edge> edges_out_of(const std::vector<Tensor>& outputs, std::uint64_t first_sequence) {
    std::vector<Edge> result;
    std::set<std::pair<const void*, std::size_t>> seen;
    std::vector<Edge> stack;
    for (const Tensor& output : outputs) stack.push_back(edge_of(output));
    while (!stack.empty()) {
        const Edge edge = std::move(stack.back());
        stack.pop_back();
        if (!edge) continue;
        const void* to = edge.node ? static_cast<const void*>(edge.node.get()) : edge.leaf.get();
        if (!seen.insert({to, edge.output}).second) continue;
        if (edge.node && edge.node->sequence > first_sequence)
            stack.insert(stack.end(), edge.node->edges.begin(), edge.node->edges.end());
        else result.push_back(edge);
    }
    return result;
}

std::vector<Tensor> call(const CheckpointedFunction& function, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs = function(inputs);
    for (const Tensor& output : outputs)
        if (!output.defined())
            throw ValueError("checkpoint: expected a function that returns tensors, got an undefined one");
    return outputs;
}

/// Saved tensor for the recomputation; an error if it has changed since the first call. An input that took another
/// value since, by an in-place write under a graph, is restored.
class Unchanged {
  public:
    explicit Unchanged(const Tensor& tensor) : saved_(tensor) {}
    [[nodiscard]] Tensor get() const {
        if (saved_.reassigned())
            throw ValueError(
                fmt::format("checkpoint: a tensor of shape {} was replaced by assign() after the first "
                            "call, and the recomputation would use the new elements",
                            saved_.value("checkpoint").shape().str()));
        return saved_.get("checkpoint");
    }

  private:
    Saved saved_;
};

/// Recomputation of the function for its gradients: its inputs, and what it must return.
struct Recomputation {
    CheckpointedFunction function;
    std::vector<Unchanged> saved;  ///< inputs, then leaves that the function captures
    std::size_t inputs, outputs;
    std::vector<ops::RandomCapture::Call> random;
    std::vector<Shape> shapes;                ///< of the call's own results
    std::vector<std::size_t> result_indices;  ///< indices of these among the function's results

    std::vector<Tensor> operator()() const {
        std::vector<Tensor> saved_inputs;
        for (const Unchanged& item : saved) saved_inputs.push_back(item.get());  // checks all of them
        saved_inputs.resize(inputs);
        const FlagScope recomputing_scope(recomputing);
        const ops::RandomReplay replay(random);
        const std::vector<Tensor> results = call(function, saved_inputs);
        std::vector<Tensor> own_results;
        if (results.size() == outputs)
            for (const std::size_t index : result_indices) own_results.push_back(results[index]);
        if (!std::ranges::equal(own_results, shapes,
                                [](const Tensor& tensor, const Shape& shape) { return tensor.shape() == shape; }))
            throw ValueError(
                "checkpoint: expected a function that returns the same when it is recomputed, got results of other "
                "shapes");
        return own_results;
    }
};

/// Results of the call itself, each once, without inputs or leaves that are returned.
struct OwnResults {
    std::vector<Tensor> tensors;
    std::vector<std::size_t> indices;  ///< indices among the function's results
};

/// Replaces the node of the call's own results by `node`. @param first sequence number before the call
OwnResults replace_nodes(std::vector<Tensor>& outputs, std::uint64_t first, const std::shared_ptr<GradNode>& node) {
    OwnResults own;
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const TensorState& state = *state_of(outputs[i]);
        if (!state.node || state.node->sequence <= first) continue;
        const auto same = [&](const Tensor& item) {
            return state_of(item)->node == state.node && state_of(item)->output == state.output;
        };
        const auto index = static_cast<std::size_t>(std::ranges::find_if(own.tensors, same) - own.tensors.begin());
        if (index == own.tensors.size()) {
            own.tensors.push_back(outputs[i]);
            own.indices.push_back(i);
            Tensor& result = results.emplace_back(outputs[i].value());
            state_of(result)->node = node;
            state_of(result)->output = index;
            share_memory(outputs[i], result);
            node->outputs.push_back({result.shape(), result.dtype(), result.device()});
        }
        outputs[i] = results[index];
    }
    return own;
}

}  // namespace

bool is_recomputing() { return recomputing; }

}  // namespace detail

std::vector<Tensor> checkpoint(const CheckpointedFunction& function, const std::vector<Tensor>& inputs) {
    if (!function) throw ValueError("checkpoint: expected a function, got none");
    if (!grad_enabled()) return detail::call(function, inputs);
    std::vector<detail::Unchanged> saved;
    for (const Tensor& input : inputs) saved.emplace_back(input);
    const std::uint64_t first = detail::next_sequence();
    std::vector<Tensor> outputs;
    std::vector<ops::RandomCapture::Call> random;
    {
        ops::RandomCapture random_capture;
        // Records the graph as without a checkpoint, so that the results are bit-identical, and to find the leaves it
        // uses. Saved tensors are released at the end.
        outputs = detail::call(function, inputs);
        random = random_capture.calls();
    }
    auto node = std::make_shared<detail::GradNode>();
    node->name = "checkpoint";
    node->kind = RuleKind::differentiable;
    node->scope = Scope::path();
    const detail::OwnResults own = detail::replace_nodes(outputs, first, node);
    if (own.tensors.empty()) return outputs;
    node->edges = detail::edges_out_of(own.tensors, first);
    node->sequence = detail::next_sequence();
    std::vector<Shape> shapes;
    for (const auto& output : node->outputs) shapes.push_back(output.shape);
    for (const detail::Edge& edge : node->edges)
        if (edge.leaf) saved.emplace_back(tensor_of(edge.leaf));
    // The results own the node, so it keeps only their shapes.
    node->recompute = detail::Recomputation{.function = function,
                                            .saved = saved,
                                            .inputs = inputs.size(),
                                            .outputs = outputs.size(),
                                            .random = random,
                                            .shapes = shapes,
                                            .result_indices = own.indices};
    return outputs;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
    if (!function) throw ValueError("checkpoint: expected a function, got none");
    return checkpoint([function](const std::vector<Tensor>& inputs) { return std::vector{function(inputs[0])}; },
                      std::vector{x})
        .front();
}

}  // namespace declivity
