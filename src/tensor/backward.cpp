// Traversal of the graph: nodes from the latest to the earliest, each once all its gradients have been accumulated.
#include "backward.hpp"

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "capture_tracker.hpp"
#include "tensor_state.hpp"
#include "rule_call.hpp"
#include "runtime/capture.hpp"
#include "ops/support/box.hpp"
#include "ops/engine/lazy_array.hpp"

namespace declivity {
namespace detail {
namespace {

/// Accumulator of a gradient that several rules contribute to.
class Sum {
  public:
    [[nodiscard]] Tensor take() {
        settle();
        return std::move(value_);
    }

    void add(const Tensor& gradient) {
        settle();
        if (own_) {
            value_.add_(gradient);
        } else {
            value_ = value_.defined() ? value_ + gradient : gradient;
        }
    }

    /// Partial gradients are collected: those that do not overlap are written directly, and if they cover the whole
    /// gradient it is not zero-filled first. @param like shape, type and device of the whole gradient
    void add(GradientRegion region, const OutputInfo& like) {
        if (value_.defined()) {
            if (!own_) value_ = value_.clone();
            own_ = true;
            Tensor(region.part(value_.view())).add_(region.gradient);
            return;
        }
        parts_.push_back(std::move(region));
        if (parts_.size() == 1) like_.emplace(like.shape, like.dtype, like.device);
        if (parts_.size() == kMaxParts) settle();
    }

  private:
    static constexpr std::size_t kMaxParts = 32;  // each is compared with all others

    /// Assembles the whole gradient from its parts.
    void settle() {
        if (parts_.empty()) return;
        const ops::View whole = ops::View::make(like_->device, like_->dtype, like_->shape);
        std::vector<ops::View> places;
        std::vector<std::optional<ops::Box>> boxes;
        std::vector<bool> first;  // whether it overlaps no earlier part
        std::int64_t covered = 0;
        for (const GradientRegion& part : parts_) {
            const ops::View& place = places.emplace_back(part.part(whole));
            const std::optional<ops::Box> box = ops::box_of(whole, place);
            first.push_back(std::ranges::none_of(
                boxes, [&](const auto& other) { return !box || !other || ops::overlap(*box, *other); }));
            boxes.push_back(box);
            if (first.back()) covered += place.numel();
        }
        if (covered < whole.numel()) ops::fill(whole, 0);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            Tensor place(places[i]);
            if (first[i]) place.copy_(std::move(parts_[i].gradient));
            else place.add_(parts_[i].gradient);
        }
        parts_.clear();
        value_ = Tensor(whole);
        own_ = true;
    }

    Tensor value_;
    bool own_ = false;                   // unshared memory, which may be written in place
    std::vector<GradientRegion> parts_;  // partial gradients not yet assembled
    std::optional<OutputInfo> like_;
};

/// Accumulated gradients of one node that has not been visited.
struct Pending {
    std::shared_ptr<GradNode> node;
    std::vector<Sum> gradients;
};

class Backward {
  public:
    explicit Backward(const BackwardRequest& request) : request_(request) {}

    std::vector<Tensor> run() {
        // Without create_graph the rules record no graph.
        std::optional<NoGrad> no_grad;
        if (!request_.create_graph) no_grad.emplace();
        start();
        if (!request_.accumulate) {
            std::vector<GradNode*> first;
            for (const auto& [sequence, pending] : ready_) first.push_back(pending.node.get());
            mark_needed(std::move(first));
        } else if (leaves_have_hooks()) {
            std::vector<Edge> outputs;
            for (const Tensor& output : request_.outputs) outputs.push_back(edge_of(output));
            note_last_uses(outputs, 0, nullptr);
        }
        while (!ready_.empty()) {
            accumulate_ready_leaves();
            Pending pending = std::move(ready_.extract(ready_.begin()).mapped());
            visit(*pending.node, pending);
        }
        return finish();
    }

  private:
    static std::string_view caller(bool accumulate) { return accumulate ? "backward" : "grad"; }

    void start() {
        if (request_.gradients.size() > request_.outputs.size())
            throw ValueError(fmt::format("{}: expected at most {} gradients, one for each output, got {}",
                                         caller(request_.accumulate), request_.outputs.size(),
                                         request_.gradients.size()));
        for (std::size_t i = 0; i < request_.outputs.size(); ++i) {
            const Tensor& output = request_.outputs[i];
            const std::string_view name = caller(request_.accumulate);
            if (!output.defined()) throw ValueError(fmt::format("{}: expected a tensor, got an undefined one", name));
            const Edge edge = edge_of(output);
            if (!edge)
                throw ValueError(fmt::format(
                    "{}: expected a tensor that depends on one that requires a gradient, got one of shape {} "
                    "that does not (was it made under NoGrad, or detached?)",
                    name, output.shape().str()));
            Tensor gradient = i < request_.gradients.size() ? request_.gradients[i] : Tensor();
            if (!gradient.defined()) {
                if (output.numel() != 1)
                    throw ValueError(fmt::format(
                        "{}: expected a scalar, or a gradient of the output's shape, got a tensor of shape {} "
                        "without one",
                        name, output.shape().str()));
                gradient = ones_like(output);
            }
            check_gradient(name, gradient, {output.shape(), output.dtype(), output.device()});
            send(edge, gradient);
        }
        for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
            const Edge edge = request_.inputs[i].defined() ? edge_of(request_.inputs[i]) : Edge{};
            if (!edge)
                throw ValueError(
                    fmt::format("grad: expected inputs that require gradients, got input {} that does not", i));
            if (edge.node) captured_nodes_[{edge.node.get(), edge.output}].push_back(i);
            else captured_leaves_[edge.leaf.get()].push_back(i);
        }
        captured_.resize(request_.inputs.size());
    }

    static void check_gradient(std::string_view name, const Tensor& gradient, const OutputInfo& wanted) {
        check_gradient([name] { return std::string(name); }, gradient, wanted);
    }

    /// @param name called for the prefix of errors
    template <std::invocable Name>
    static void check_gradient(const Name& name, const Tensor& gradient, const OutputInfo& wanted) {
        if (!(gradient.shape() == wanted.shape))
            throw ShapeError(fmt::format("{}: expected a gradient of shape {}, got {}", name(), wanted.shape.str(),
                                         gradient.shape().str()));
        if (gradient.dtype() != wanted.dtype)
            throw TypeError(fmt::format("{}: expected a gradient of type {}, got {}", name(), name_of(wanted.dtype),
                                        name_of(gradient.dtype())));
        if (!(gradient.device() == wanted.device))
            throw DeviceError(fmt::format("{}: expected a gradient on '{}', got one on '{}'", name(),
                                          wanted.device.name(), gradient.device().name()));
    }

    /// Finds the nodes on paths to the inputs of grad(): only these are visited.
    void mark_needed(std::vector<GradNode*> stack) {
        std::map<std::uint64_t, GradNode*> reachable;  // ordered by sequence: a node's dependencies come before it
        while (!stack.empty()) {
            GradNode* node = stack.back();
            stack.pop_back();
            if (!reachable.emplace(node->sequence, node).second) continue;
            if (request_.stop_at_inputs && captured_nodes_.contains({node, 0})) continue;
            for (const Edge& edge : node->edges)
                if (edge.node) stack.push_back(edge.node.get());
        }
        for (const auto& [sequence, node] : reachable)
            for (const Edge& edge : node->edges)
                if (leads_to_input(edge)) needed_.insert(node);
    }

    [[nodiscard]] bool leads_to_input(const Edge& edge) const {
        if (edge.leaf) return captured_leaves_.contains(edge.leaf.get());
        return edge.node &&
               (needed_.contains(edge.node.get()) || captured_nodes_.contains({edge.node.get(), edge.output}));
    }

    [[nodiscard]] bool wanted(const Edge& edge) const { return edge && (request_.accumulate || leads_to_input(edge)); }

    /// The earliest node with an edge to a leaf, and that edge. Nodes are visited after all later ones, so a leaf's
    /// gradient is complete once only earlier nodes remain, whether or not the nodes between were visited. Ordered from
    /// later to earlier uses, and within a node by input.
    struct Use {
        std::uint64_t sequence;
        std::size_t edge;
        friend bool operator<(const Use& a, const Use& b) {
            return a.sequence != b.sequence ? a.sequence > b.sequence : a.edge < b.edge;
        }
    };

    /// Finds the last uses of leaves with hooks.
    /// @param again a checkpoint that has been recomputed, with these edges to its results: if it was the last to use a
    /// leaf, that is now a node within it. Null at the beginning
    /// @param after earlier nodes have already been searched
    void note_last_uses(const std::vector<Edge>& edges, std::uint64_t after, const GradNode* again) {
        std::unordered_map<TensorState*, std::pair<Use, const std::shared_ptr<TensorState>*>> last;
        std::unordered_set<const GradNode*> seen;
        std::vector<const GradNode*> stack;
        const auto follow = [&](const Edge& edge, const Use& use) {
            if (edge.node && edge.node->sequence > after) {
                if (seen.insert(edge.node.get()).second) stack.push_back(edge.node.get());
            } else if (again != nullptr && edge.node && edge.node->sequence > again->sequence) {
                throw ValueError(
                    "checkpoint: expected a function that does the same when it is recomputed, but a tensor that it "
                    "refers to was written in place under a graph after the first call");
            } else if (edge.leaf && !(edge.leaf->hooks.empty() && edge.leaf->after_grad.empty())) {
                const auto [entry, fresh] = last.try_emplace(edge.leaf.get(), use, &edge.leaf);
                if (!fresh && entry->second.first < use) entry->second.first = use;
            }
        };
        for (std::size_t i = 0; i < edges.size(); ++i) follow(edges[i], {UINT64_MAX, i});
        while (!stack.empty()) {
            const GradNode* const node = stack.back();
            stack.pop_back();
            for (std::size_t i = 0; i < node->edges.size(); ++i) follow(node->edges[i], {node->sequence, i});
        }
        for (const auto& [leaf, found] : last) {
            const auto& [use, handle] = found;
            const auto known = last_uses_.find(leaf);
            if (again != nullptr) {
                if (known == last_uses_.end() || known->second.sequence != again->sequence) continue;
                pending_leaves_.erase(known->second);
            }
            last_uses_[leaf] = use;
            pending_leaves_.emplace(use, *handle);
        }
    }

    /// Passes completed gradients to leaves with hooks.
    void accumulate_ready_leaves() {
        const std::uint64_t next = ready_.empty() ? 0 : ready_.begin()->first;
        while (!pending_leaves_.empty() && pending_leaves_.begin()->first.sequence > next) {
            const std::shared_ptr<TensorState> leaf = pending_leaves_.extract(pending_leaves_.begin()).mapped();
            accumulate_leaf(leaf);
        }
    }

    Sum& sum_of(const Edge& edge) {
        if (edge.leaf) {
            auto [entry, fresh] = leaves_.try_emplace(edge.leaf.get());
            if (fresh) leaf_order_.push_back(edge.leaf);
            return entry->second;
        }
        Pending& pending = ready_[edge.node->sequence];
        if (!pending.node) pending = {edge.node, std::vector<Sum>(edge.node->outputs.size())};
        return pending.gradients[edge.output];
    }

    void send(const Edge& edge, const Tensor& gradient) { sum_of(edge).add(gradient); }

    void send(const Edge& edge, detail::GradientRegion region) { sum_of(edge).add(std::move(region), target(edge)); }

    static void require_hooks_allowed() {
        if (const auto* const notes = CaptureTracker::current(); notes != nullptr && !notes->allows_hooks)
            Capture::current()->refuse("a hook of a tensor", "a replay would not call it",
                                       "remove it, or set CaptureOptions::hooks if hooks only enqueue");
    }

    /// By value, since a hook may add or remove hooks.
    static void apply_hooks(const Hooks hooks, Tensor& gradient) {
        if (!hooks.empty()) require_hooks_allowed();
        for (const auto& [number, hook] : hooks) {
            const Tensor changed = hook(gradient);
            if (!changed.defined()) continue;
            check_gradient("hook", changed, {gradient.shape(), gradient.dtype(), gradient.device()});
            gradient = changed;
        }
    }

    void visit(GradNode& node, Pending& pending) {
        std::vector<Tensor> received;
        for (Sum& sum : pending.gradients) received.push_back(sum.take());
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            Tensor& gradient = received[i];
            if (gradient.defined()) apply_hooks(node.outputs[i].hooks, gradient);
            if (const auto found = captured_nodes_.find({&node, i}); found != captured_nodes_.end())
                for (const std::size_t input : found->second) captured_[input] = gradient;
        }
        if (!request_.accumulate && !needed_.contains(&node)) return;
        if (!node.rule && !node.recompute)
            throw ValueError(
                fmt::format("backward of {}: the graph was freed by an earlier backward; pass retain_graph to the "
                            "first one to use it again",
                            node.name));
        const ResumedScope resumed(node.scope);  // profiles and errors show the layer that called the function
        if (node.recompute) return visit_recomputed(node, received);
        for (std::size_t i = 0; i < node.outputs.size(); ++i)
            if (!received[i].defined())
                received[i] = zeros(node.outputs[i].shape, {node.outputs[i].dtype, node.outputs[i].device});
        std::vector<bool> needs;
        for (const Edge& edge : node.edges) needs.push_back(wanted(edge));
        std::vector<const std::shared_ptr<GradNode>*> activations;
        for (const Edge& edge : node.edges) activations.push_back(passable(edge) ? &edge.node : nullptr);
        // Donated, so that the rule may release them, unless create_graph needs them.
        const std::vector<Tensor> incoming = request_.create_graph ? received : std::vector<Tensor>();
        detail::RuleCall rule{.node = pending.node,
                              .gradients = std::move(received),
                              .needs = std::move(needs),
                              .activations = std::move(activations),
                              .retain_graph = request_.retain_graph};
        std::vector<Tensor> gradients = call(node, incoming, rule);
        if (!request_.retain_graph) node.rule = nullptr;
        for (std::size_t i = 0; i < node.edges.size(); ++i)
            if (rule.needs[i] && gradients[i].defined())
                send(rule.passed[i] ? node.edges[i].node->edges.front() : node.edges[i], gradients[i]);
        for (detail::GradientRegion& region : rule.regions) {
            const Edge& edge = node.edges[region.input];
            send(edge, std::move(region));
        }
    }

    /// Recomputes a checkpointed function and continues through its graph, which is later than all remaining nodes:
    /// gradients are accumulated in the same order as without a checkpoint.
    void visit_recomputed(GradNode& node, const std::vector<Tensor>& gradients) {
        std::vector<Tensor> outputs;
        const std::uint64_t before = next_sequence();
        {
            const FlagScope records(grad_mode());
            outputs = node.recompute();
        }
        if (!request_.retain_graph) node.recompute = nullptr;
        std::vector<Edge> edges;
        for (const Tensor& output : outputs) edges.push_back(edge_of(output));
        note_last_uses(edges, before, &node);
        if (!request_.accumulate) {
            std::vector<GradNode*> first;
            for (const Edge& edge : edges)
                if (edge.node) first.push_back(edge.node.get());
            mark_needed(std::move(first));
        }
        for (std::size_t i = 0; i < edges.size(); ++i)
            if (gradients[i].defined() && wanted(edges[i])) send(edges[i], gradients[i]);
    }

    /// Returns whether the edge leads to an activation whose output gradient is not observed. Other contributions to
    /// that gradient may take the normal path, since an activation's gradient is linear in it.
    [[nodiscard]] bool passable(const Edge& edge) const {
        if (!edge.node || request_.create_graph || !edge.node->activation || !edge.node->rule) return false;
        return edge.node->outputs[edge.output].hooks.empty() &&
               !captured_nodes_.contains({edge.node.get(), edge.output});
    }

    std::vector<Tensor> call(GradNode& node, const std::vector<Tensor>& incoming, detail::RuleCall& rule) {
        const bool opaque = request_.create_graph && node.kind == RuleKind::opaque;
        std::vector<Tensor> gradients;
        const FunctionScope scope(node.name, SpanKind::backward);
        {
            std::optional<NoGrad> no_grad;
            if (opaque) no_grad.emplace();
            gradients = node.rule(GradientContext(rule));
            if (opaque) make_whole(node, rule, gradients);
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
    static void make_whole(const GradNode& node, detail::RuleCall& rule, std::vector<Tensor>& gradients) {
        for (detail::GradientRegion& region : std::exchange(rule.regions, {})) {
            Sum sum;
            Tensor& whole = gradients.at(region.input);
            if (whole.defined()) sum.add(whole);
            sum.add(std::move(region), target(node.edges[region.input]));
            whole = sum.take();
        }
    }

    static OutputInfo target(const Edge& edge) {
        if (edge.node) return edge.node->outputs[edge.output];
        return {edge.leaf->value.shape(), edge.leaf->value.dtype(), edge.leaf->value.device()};
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
        out.state()->node = std::move(refusal);
        return out;
    }

    /// Accumulates a leaf's gradient, if there is one, and calls its hooks.
    void accumulate_leaf(const std::shared_ptr<TensorState>& leaf) {
        const auto found = leaves_.find(leaf.get());
        if (found == leaves_.end()) return;
        Tensor gradient = found->second.take();
        leaves_.erase(found);
        apply_hooks(leaf->hooks, gradient);
        if (const auto wishes = captured_leaves_.find(leaf.get()); wishes != captured_leaves_.end())
            for (const std::size_t input : wishes->second) captured_[input] = gradient;
        if (!request_.accumulate) return;
        accumulate(leaf, std::move(gradient));
        const PostAccumulateHooks hooks = leaf->after_grad;  // a hook may add or remove hooks
        if (!hooks.empty()) require_hooks_allowed();
        for (const auto& [number, hook] : hooks) {
            Tensor handle(leaf);
            hook(handle);
        }
    }

    std::vector<Tensor> finish() {
        accumulate_ready_leaves();
        for (const auto& leaf : leaf_order_) accumulate_leaf(leaf);
        for (std::size_t i = 0; i < captured_.size(); ++i)
            if (!captured_[i].defined() && !request_.allow_unused)
                throw ValueError(fmt::format(
                    "grad: input {} is not used by the outputs; allow_unused returns an undefined tensor for it", i));
        return captured_;
    }

    void accumulate(const std::shared_ptr<TensorState>& state, Tensor gradient) {
        if (auto* const notes = CaptureTracker::current()) {
            notes->reads_grad(state);
            notes->writes_grad(state);
        }
        TensorState& leaf = *state;
        const bool graph = request_.create_graph;
        while (true) {  // other threads may accumulate into the same leaf
            Tensor present, sum;
            {
                const auto lock = lock_tensor(leaf);
                present = leaf.grad;
            }
            // Everything that may run user code (evaluation, destruction) is done without the lock.
            if (!present.defined()) {
                if (!graph) gradient = in_own_memory(std::move(gradient));
            } else if (graph) {
                sum = present + gradient;
            } else {
                (void)present.view();
                (void)gradient.view();
            }
            {
                const auto lock = lock_tensor(leaf);
                if (leaf.grad.state() != present.state()) continue;
                if (!present.defined()) leaf.grad = std::move(gradient);
                else if (graph) std::swap(leaf.grad, sum);
            }
            // Kernels may be compiled here.
            if (present.defined() && !graph) add_to_grad(leaf, std::move(present), gradient);
            return;
        }
    }

    /// A grad is written in place later (accumulation, clipping), so its memory must be unshared.
    static Tensor in_own_memory(Tensor gradient) {
        const bool unique = !is_shared(gradient);
        if (unique && ops::is_batched(gradient.value())) return gradient;
        const ops::View& view = gradient.view();
        const bool own = unique && !ops::is_shared(view.buffer) && view.dense();
        return own ? gradient : gradient.clone();
    }

    const BackwardRequest& request_;
    std::map<std::uint64_t, Pending, std::greater<>>
        ready_;  // latest first: all contributions to a node come from later ones
    std::unordered_map<TensorState*, Sum> leaves_;
    std::vector<std::shared_ptr<TensorState>> leaf_order_;
    std::map<Use, std::shared_ptr<TensorState>> pending_leaves_;  // with hooks, not accumulated yet
    std::unordered_map<const TensorState*, Use> last_uses_;
    std::map<std::pair<const GradNode*, std::size_t>, std::vector<std::size_t>> captured_nodes_;
    std::unordered_map<const TensorState*, std::vector<std::size_t>> captured_leaves_;
    std::set<const GradNode*> needed_;
    std::vector<Tensor> captured_;
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
