#include <declivity/tensor/checkpoint.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <declivity/ops/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <fmt/format.h>

#include "tensor_state.hpp"

namespace declivity {

namespace detail {
namespace {
thread_local bool again = false;

class Again {
  public:
    Again() : before_(std::exchange(again, true)) {}
    ~Again() { again = before_; }
    Again(const Again&) = delete;
    Again& operator=(const Again&) = delete;

  private:
    bool before_;
};

/// What the call leads to beyond itself: results of older calls, and leaves. Each once.
std::vector<Edge> edges_out_of(const std::vector<Tensor>& outputs, std::uint64_t first_sequence) {
    std::vector<Edge> found;
    std::set<std::pair<const void*, std::size_t>> seen;
    std::vector<Edge> stack;
    for (const Tensor& output : outputs) stack.push_back(edge_of(output));
    while (!stack.empty()) {
        const Edge edge = std::move(stack.back());
        stack.pop_back();
        if (!edge) continue;
        const void* to = edge.node ? static_cast<const void*>(edge.node.get()) : edge.leaf.get();
        if (!seen.insert({to, edge.output}).second) continue;
        if (edge.node && edge.node->sequence > first_sequence) stack.insert(stack.end(), edge.node->edges.begin(), edge.node->edges.end());
        else found.push_back(edge);
    }
    return found;
}

std::vector<Tensor> call(const CheckpointedFunction& function, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs = function(inputs);
    for (const Tensor& output : outputs)
        if (!output.defined()) throw ValueError("checkpoint: wants a function that gives tensors, got an undefined one");
    return outputs;
}

}  // namespace

bool running_again() { return again; }

}  // namespace detail

std::vector<Tensor> checkpoint(const CheckpointedFunction& function, const std::vector<Tensor>& inputs) {
    if (!function) throw ValueError("checkpoint: wants a function, got none");
    const ops::RandomSnapshot random;
    const std::uint64_t first = detail::next_sequence();
    // Recorded as without a checkpoint, so that the results are the same to the bit, and to learn which leaves it uses. What was kept for its
    // gradients goes when this ends.
    const std::vector<Tensor> recorded_outputs = detail::call(function, inputs);
    if (!grad_enabled()) return recorded_outputs;
    auto node = std::make_shared<detail::GradNode>();
    node->edges = detail::edges_out_of(recorded_outputs, first);
    if (node->edges.empty()) return recorded_outputs;
    node->name = "checkpoint";
    node->sequence = detail::next_sequence();
    node->kind = RuleKind::composed;
    node->scope = Scope::path();
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < recorded_outputs.size(); ++i) {
        const Tensor& from = recorded_outputs[i];
        outputs.emplace_back(from.value());
        node->outputs.push_back({from.shape(), from.dtype(), from.device()});
        if (!detail::edge_of(from)) continue;
        outputs.back().state()->node = node;
        outputs.back().state()->output = i;
    }
    std::vector<Saved> kept, leaves;
    for (const Tensor& input : inputs) kept.emplace_back(input);
    for (const detail::Edge& edge : node->edges)
        if (edge.leaf) leaves.emplace_back(Tensor(edge.leaf));
    // The nodes own what `again` keeps, and it must not own them: shapes alone.
    std::vector<Shape> shapes;
    for (const Tensor& output : outputs) shapes.push_back(output.shape());
    node->again = [function, kept, leaves, random, shapes] {
        std::vector<Tensor> again;
        for (const Saved& one : kept) again.push_back(one.get("checkpoint"));
        for (const Saved& leaf : leaves) (void)leaf.get("checkpoint");
        const detail::Again scope;
        const ops::RandomReplay replay(random);
        std::vector<Tensor> results = detail::call(function, again);
        if (!std::ranges::equal(results, shapes, [](const Tensor& tensor, const Shape& shape) { return tensor.shape() == shape; }))
            throw ValueError("checkpoint: wants a function that gives the same when it is called again, got results of other shapes");
        return results;
    };
    return outputs;
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
    if (!function) throw ValueError("checkpoint: wants a function, got none");
    return checkpoint([function](const std::vector<Tensor>& inputs) { return std::vector{function(inputs[0])}; }, std::vector{x}).front();
}

}  // namespace declivity
