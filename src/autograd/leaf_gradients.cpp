#include "leaf_gradients.hpp"

#include <unordered_set>
#include <utility>

#include <declivity/runtime/error.hpp>

#include "gradient_checks.hpp"
#include "ops/engine/lazy_array.hpp"
#include "runtime/capture.hpp"
#include "tensor/tensor_observer.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {
namespace {

void require_hooks_allowed() {
    if (const auto* const observer = TensorObserver::current(); observer != nullptr && !observer->allows_hooks())
        Capture::current()->refuse("a hook of a tensor", "a replay would not call it",
                                   "remove it, or set CaptureOptions::hooks if hooks only enqueue");
}

/// A grad is written in place later (accumulation, clipping), so its memory must be unshared.
Tensor in_unshared_memory(Tensor gradient) {
    const bool unique = !is_shared(gradient);
    if (unique && ops::is_batched(gradient.value())) return gradient;
    const ops::View& view = gradient.view();
    const bool owns_memory = unique && !ops::is_shared(view.buffer) && view.dense();
    return owns_memory ? gradient : gradient.clone();
}

}  // namespace

void apply_hooks(const Hooks hooks, Tensor& gradient) {
    if (!hooks.empty()) require_hooks_allowed();
    for (const auto& [id, hook] : hooks) {
        const Tensor replacement = hook(gradient);
        if (!replacement.defined()) continue;
        check_gradient("hook", replacement, {gradient.shape(), gradient.dtype(), gradient.device()});
        gradient = replacement;
    }
}

GradientSum& LeafGradients::sum_of(const std::shared_ptr<TensorState>& leaf) {
    auto [entry, is_new] = sums_.try_emplace(leaf.get());
    if (is_new) order_.push_back(leaf);
    return entry->second;
}

void LeafGradients::find_last_uses(const std::vector<Edge>& edges, std::uint64_t after, const GradNode* recomputed) {
    std::unordered_map<TensorState*, std::pair<Use, const std::shared_ptr<TensorState>*>> last;
    std::unordered_set<const GradNode*> seen;
    std::vector<const GradNode*> stack;
    const auto follow = [&](const Edge& edge, const Use& use) {
        if (edge.node && edge.node->sequence > after) {
            if (seen.insert(edge.node.get()).second) stack.push_back(edge.node.get());
        } else if (recomputed != nullptr && edge.node && edge.node->sequence > recomputed->sequence) {
            throw ValueError(
                "checkpoint: expected a function that does the same when it is recomputed, but a tensor that it "
                "refers to was written in place under a graph after the first call");
        } else if (edge.leaf && !(edge.leaf->hooks.empty() && edge.leaf->post_accumulate_hooks.empty())) {
            const auto [entry, is_new] = last.try_emplace(edge.leaf.get(), use, &edge.leaf);
            if (!is_new && entry->second.first < use) entry->second.first = use;
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
        if (recomputed != nullptr) {
            if (known == last_uses_.end() || known->second.sequence != recomputed->sequence) continue;
            pending_.erase(known->second);
        }
        last_uses_[leaf] = use;
        pending_.emplace(use, *handle);
    }
}

void LeafGradients::release_completed(std::uint64_t next) {
    while (!pending_.empty() && pending_.begin()->first.sequence > next) {
        const std::shared_ptr<TensorState> leaf = pending_.extract(pending_.begin()).mapped();
        release(leaf);
    }
}

void LeafGradients::release_all() {
    release_completed(0);
    for (const auto& leaf : order_) release(leaf);
}

void LeafGradients::release(const std::shared_ptr<TensorState>& leaf) {
    const auto entry = sums_.find(leaf.get());
    if (entry == sums_.end()) return;
    Tensor gradient = entry->second.take();
    sums_.erase(entry);
    apply_hooks(leaf->hooks, gradient);
    inputs_.record_gradient(*leaf, gradient);
    if (!accumulate_) return;
    accumulate(leaf, std::move(gradient));
    const PostAccumulateHooks hooks = leaf->post_accumulate_hooks;  // a hook may add or remove hooks
    if (!hooks.empty()) require_hooks_allowed();
    for (const auto& [id, hook] : hooks) {
        Tensor handle = tensor_of(leaf);
        hook(handle);
    }
}

void LeafGradients::accumulate(const std::shared_ptr<TensorState>& state, Tensor gradient) const {
    if (auto* const observer = TensorObserver::current()) {
        observer->reads_grad(state);
        observer->writes_grad(state);
    }
    TensorState& leaf = *state;
    while (true) {  // other threads may accumulate into the same leaf
        Tensor current, sum;
        {
            const auto lock = lock_tensor(leaf);
            current = leaf.grad;
        }
        // Everything that may run user code (evaluation, destruction) is done without the lock.
        if (!current.defined()) {
            if (!create_graph_) gradient = in_unshared_memory(std::move(gradient));
        } else if (create_graph_) {
            sum = add_gradients(current, gradient);
        } else {
            (void)current.view();
            (void)gradient.view();
        }
        {
            const auto lock = lock_tensor(leaf);
            if (state_of(leaf.grad) != state_of(current)) continue;
            if (!current.defined()) leaf.grad = std::move(gradient);
            else if (create_graph_) std::swap(leaf.grad, sum);
        }
        // Kernels may be compiled here.
        if (current.defined() && !create_graph_) add_to_grad(leaf, std::move(current), gradient);
        return;
    }
}

}  // namespace declivity::detail
