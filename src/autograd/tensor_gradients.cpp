// Autograd members of Tensor: requires_grad, grad, backward and hooks.
#include <atomic>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/tensor.hpp>
#include <fmt/format.h>

#include "backward.hpp"
#include "graph.hpp"
#include "tensor/tensor_observer.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

using detail::checked_state;

bool Tensor::requires_grad() const {
    const auto& state = checked_state(state_, "requires_grad");
    return state.requires_grad || state.node != nullptr;
}

Tensor& Tensor::set_requires_grad(bool value) {
    auto& state = checked_state(state_, "set_requires_grad");
    if (state.node)
        throw ValueError(fmt::format("set_requires_grad: expected a leaf, got the result of {}; detach() it first",
                                     state.node->name));
    if (value && !is_floating(state.value.dtype()))
        throw TypeError(
            fmt::format("set_requires_grad: expected f32, f64, f16 or bf16, got {}", name_of(state.value.dtype())));
    state.requires_grad = value;
    return *this;
}

bool Tensor::is_leaf() const { return checked_state(state_, "is_leaf").node == nullptr; }
Tensor Tensor::grad() const {
    const auto& state = checked_state(state_, "grad");
    if (auto* const observer = detail::TensorObserver::current()) observer->reads_grad(state_);
    const auto lock = detail::lock_tensor(state);
    return state.grad;
}

void Tensor::set_grad(const Tensor& gradient) {
    auto& state = checked_state(state_, "set_grad");
    if (gradient.defined()) {
        ops::require_shape("set_grad", "the gradient", gradient.shape(), shape());
        ops::require_alike("set_grad", "gradient", gradient.view(), "tensor", view());
    }
    if (auto* const observer = detail::TensorObserver::current()) observer->writes_grad(state_);
    detail::exchange_grad(state, gradient);
}

void Tensor::zero_grad() {
    auto& state = checked_state(state_, "zero_grad");
    if (auto* const observer = detail::TensorObserver::current()) observer->writes_grad(state_);
    detail::exchange_grad(state, {});
}

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
    detail::run_backward({.outputs = {*this}, .gradients = {gradient}, .inputs = {}, .retain_graph = retain_graph});
}

namespace {

int next_hook() {
    static std::atomic<int> last{0};  // ids are unique, so that a stale id removes no other hook
    return ++last;
}

}  // namespace

int Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
    auto& state = checked_state(state_, "register_hook");
    if (!requires_grad())
        throw ValueError("register_hook: expected a tensor that requires a gradient, got one that does not");
    if (!hook) throw ValueError("register_hook: expected a function, got an empty one");
    auto& hooks = state.node ? state.node->outputs[state.output].hooks : state.hooks;
    if (!state.node) detail::leaves_have_hooks() = true;
    return hooks.emplace_back(next_hook(), std::move(hook)).first;
}

int Tensor::register_post_accumulate_grad_hook(std::function<void(Tensor&)> hook) {
    constexpr auto* name = "register_post_accumulate_grad_hook";
    auto& state = checked_state(state_, name);
    if (state.node)
        throw ValueError(
            fmt::format("{}: expected a leaf, got the result of {}, which has no grad", name, state.node->name));
    if (!state.requires_grad)
        throw ValueError(fmt::format("{}: expected a tensor that requires a gradient, got one that does not", name));
    if (!hook) throw ValueError(fmt::format("{}: expected a function, got an empty one", name));
    detail::leaves_have_hooks() = true;
    return state.post_accumulate_hooks.emplace_back(next_hook(), std::move(hook)).first;
}

void Tensor::remove_hook(int id) {
    auto& state = checked_state(state_, "remove_hook");
    const auto has_id = [id](const auto& hook) { return hook.first == id; };
    std::erase_if(state.node ? state.node->outputs[state.output].hooks : state.hooks, has_id);
    std::erase_if(state.post_accumulate_hooks, has_id);
}

}  // namespace declivity
