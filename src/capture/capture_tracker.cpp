#include "capture_tracker.hpp"

#include <algorithm>

#include "ops/engine/lazy_array.hpp"
#include "runtime/capture.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {
namespace {

template <typename T>
T& find_or_add(std::vector<T>& list, std::unordered_map<const TensorState*, std::size_t>& indices,
               const TensorState* tensor) {
    const auto [entry, is_new] = indices.try_emplace(tensor, list.size());
    if (is_new) list.emplace_back();
    return list[entry->second];
}

/// Number and last id of a leaf's hooks of both kinds. Hooks of other tensors belong to a graph, which ends with the
/// step.
std::pair<std::size_t, int> hooks_of(const TensorState& tensor) {
    const int last = tensor.hooks.empty() ? 0 : tensor.hooks.back().first;
    const int last_after = tensor.post_accumulate_hooks.empty() ? 0 : tensor.post_accumulate_hooks.back().first;
    return {tensor.hooks.size() + tensor.post_accumulate_hooks.size(), std::max(last, last_after)};
}

}  // namespace

CaptureTracker* CaptureTracker::current() { return static_cast<CaptureTracker*>(TensorObserver::current()); }

std::shared_ptr<CaptureTracker> CaptureTracker::attach(Capture& capture) {
    auto tracker = std::make_shared<CaptureTracker>();
    TensorObserver::attach(capture, tracker);
    return tracker;
}

void CaptureTracker::uses(const std::shared_ptr<TensorState>& tensor) {
    UsedTensor& used = find_or_add(used_tensors_, used_indices_, tensor.get());
    if (!used.tensor.expired()) return;  // otherwise new, or of a destroyed tensor
    used = {tensor, state_of(tensor->value).get(), tensor->requires_grad, hooks_of(*tensor), {}};
}

CaptureTracker::Grad& CaptureTracker::grad_of(const std::shared_ptr<TensorState>& leaf) {
    Grad& grad = find_or_add(grads_, grad_indices_, leaf.get());
    if (grad.leaf.expired()) {
        grad = {};
        grad.leaf = leaf;
        grad.existed = leaf->grad.defined();
        if (grad.existed) grad.previous = state_of(leaf->grad);
    }
    return grad;
}

void CaptureTracker::reads_grad(const std::shared_ptr<TensorState>& leaf) {
    Grad& grad = grad_of(leaf);
    grad.read = grad.read || !grad.written;
}

void CaptureTracker::writes_grad(const std::shared_ptr<TensorState>& leaf) { grad_of(leaf).written = true; }

void CaptureTracker::value_replaced(const std::shared_ptr<TensorState>& tensor) {
    if (const auto entry = used_indices_.find(tensor.get()); entry != used_indices_.end())
        used_tensors_[entry->second].value = state_of(tensor->value).get();
}

void CaptureTracker::close() {
    used_indices_.clear();
    grad_indices_.clear();
    std::erase_if(used_tensors_, [](const UsedTensor& used) { return used.tensor.expired(); });
    for (UsedTensor& used : used_tensors_) {
        const auto tensor = used.tensor.lock();
        used.retained = tensor->value;
        assigned_ =
            assigned_ || used.value != state_of(used.retained).get() || used.requires_grad != tensor->requires_grad;
    }
    std::erase_if(grads_, [](const Grad& grad) { return grad.leaf.expired(); });
    for (Grad& grad : grads_)
        if (grad.written) grad.final_grad = grad.leaf.lock()->grad;
}

bool CaptureTracker::inputs_aliased(std::uint64_t capture, const std::vector<Tensor>& inputs) const {
    return std::ranges::any_of(used_tensors_, [&](const UsedTensor& used) {
        const auto tensor = used.tensor.lock();
        if (!tensor || !tensor->value.computed() || ops::capture_of(tensor->value) == capture) return false;
        const auto is_same = [&](const Tensor& input) {
            return state_of(state_of(input)->value) == state_of(tensor->value);
        };
        const auto shares = [&](const Tensor& input) {
            return state_of(input)->value.view().buffer == tensor->value.view().buffer;
        };
        return std::ranges::none_of(inputs, is_same) && std::ranges::any_of(inputs, shares);
    });
}

bool CaptureTracker::is_input(const Capture& capture, const ops::LazyArray& value) const {
    const auto is_same = [&](const Tensor& input) { return state_of(state_of(input)->value) == state_of(value); };
    return std::ranges::any_of(step_inputs, is_same) ||
           (ops::capture_of(value) == Capture::current_number() && capture.is_input(value.view().buffer));
}

bool CaptureTracker::leaves_gradient_in(const std::vector<Buffer>& inputs) const {
    return std::ranges::any_of(grads_, [&](const Grad& grad) {
        const auto leaf = grad.leaf.lock();
        return leaf && grad.written && leaf->grad.defined() && leaf->grad.value().computed() &&
               std::ranges::find(inputs, leaf->grad.value().view().buffer) != inputs.end();
    });
}

bool CaptureTracker::leaves_graph() const {
    return std::ranges::any_of(grads_, [](const Grad& grad) {
        const auto leaf = grad.leaf.lock();
        return leaf && grad.written && leaf->grad.defined() && !leaf->grad.is_leaf();
    });
}

bool CaptureTracker::is_unchanged() const {
    const auto same = [](const UsedTensor& used) {
        const auto tensor = used.tensor.lock();
        return !tensor || (state_of(tensor->value).get() == used.value && tensor->requires_grad == used.requires_grad &&
                           hooks_of(*tensor) == used.hooks);
    };
    const auto same_grad = [](const Grad& grad) {
        const auto leaf = grad.leaf.lock();
        if (!leaf || !grad.read) return true;
        return grad.existed ? leaf->grad.defined() && state_of(leaf->grad) == grad.previous.lock()
                            : !leaf->grad.defined();
    };
    return std::ranges::all_of(used_tensors_, same) && std::ranges::all_of(grads_, same_grad);
}

void CaptureTracker::restore() const {
    for (const Grad& grad : grads_) {
        if (!grad.written) continue;
        const auto leaf = grad.leaf.lock();
        if (leaf && state_of(leaf->grad) != state_of(grad.final_grad)) leaf->grad = grad.final_grad;
    }
}

}  // namespace declivity::detail
