#include <declivity/tensor/autograd.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <condition_variable>
#include <mutex>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "backward.hpp"
#include "decomposition.hpp"
#include "reduced_precision.hpp"
#include "tensor_state.hpp"
#include "rule_call.hpp"
#include "ops/engine/lazy_array.hpp"
#include "runtime/per_device.hpp"

namespace declivity {
namespace detail {
namespace {

thread_local bool grad_mode_of_thread = true;

// A graph may be a chain of a million nodes, whose nested destructors would overflow the stack. The outermost
// destructor keeps a list, to which nested ones move the nodes they own.
thread_local std::vector<std::shared_ptr<GradNode>>* doomed = nullptr;

template <class Release>
void release_flat(Release&& release) {
    if (doomed != nullptr) {
        release(*doomed);
        return;
    }
    std::vector<std::shared_ptr<GradNode>> list;
    doomed = &list;
    release(list);
    while (!list.empty()) {
        const std::shared_ptr<GradNode> node = std::move(list.back());
        list.pop_back();
    }
    doomed = nullptr;
}

}  // namespace

bool& grad_mode() { return grad_mode_of_thread; }

GradNode::~GradNode() {
    release_flat([this](auto& list) {
        for (Edge& edge : edges)
            if (edge.node) list.push_back(std::move(edge.node));
        rule = nullptr;
        recompute = nullptr;
    });
}

TensorState::~TensorState() {
    if (node) release_flat([this](auto& list) { list.push_back(std::move(node)); });
}

std::unique_lock<std::mutex> lock_tensor(const TensorState& tensor) {
    refuse_after_fork("a tensor");
    // A mutex per tensor would make all tensors larger.
    struct Locks {
        std::array<std::mutex, 64> mutexes;
    };
    auto& mutexes = per_device<Locks>(tensor.value.device()).mutexes;
    return std::unique_lock(mutexes[std::hash<const void*>()(&tensor) / alignof(std::max_align_t) % mutexes.size()]);
}

void exchange_grad(TensorState& tensor, Tensor gradient) {
    const auto lock = lock_tensor(tensor);
    std::swap(tensor.grad, gradient);  // the previous gradient is destroyed after unlocking
}

void add_to_grad(const TensorState& tensor, Tensor present, const Tensor& gradient) {
    struct Adding {
        std::mutex mutex;
        std::condition_variable done;
        std::vector<const TensorState*> to;
    };
    auto& adding = per_device<Adding>(tensor.value.device());
    {
        std::unique_lock lock(adding.mutex);
        adding.done.wait(lock, [&] { return std::ranges::find(adding.to, &tensor) == adding.to.end(); });
        adding.to.push_back(&tensor);
    }
    struct Done {
        Adding& adding;
        const TensorState& tensor;
        ~Done() {
            {
                const std::scoped_lock lock(adding.mutex);
                std::erase(adding.to, &tensor);
            }
            adding.done.notify_all();
        }
    } const done{adding, tensor};
    present.add_(gradient);
}

void share_memory(const Tensor& a, const Tensor& b) {
    const auto lock = lock_tensor(*a.state());  // views of one tensor may be made by several threads
    auto& shared = a.state()->shares;
    if (!shared) shared = std::make_shared<const char>();
    b.state()->shares = shared;
}

std::atomic<bool>& leaves_have_hooks() {
    static std::atomic<bool> ever{false};
    return ever;
}

std::uint64_t next_sequence() {
    static std::atomic<std::uint64_t> sequence{0};
    return ++sequence;
}

Edge edge_of(const Tensor& tensor) {
    if (!tensor.defined()) return {};
    const auto& state = tensor.state();
    if (state->node) return {.node = state->node, .output = state->output};
    if (state->requires_grad) return {.leaf = state};
    return {};
}

}  // namespace detail

using detail::Edge;
using detail::GradNode;
using detail::TensorState;

NoGrad::NoGrad() : before_(std::exchange(detail::grad_mode_of_thread, false)) {}
NoGrad::~NoGrad() { detail::grad_mode_of_thread = before_; }
EnableGrad::EnableGrad() : before_(std::exchange(detail::grad_mode_of_thread, true)) {}
EnableGrad::~EnableGrad() { detail::grad_mode_of_thread = before_; }
bool grad_enabled() { return detail::grad_mode_of_thread; }

bool any_requires_grad(const std::vector<Tensor>& inputs) {
    if (!detail::grad_mode_of_thread) return false;
    for (const Tensor& input : inputs)
        if (input.defined() && input.requires_grad()) return true;
    return false;
}

namespace {

/// Attaches results to the graph.
void join(std::string_view name, const std::vector<Tensor>& inputs, std::span<const Tensor> results, GradientRule rule,
          RuleKind kind) {
    // A function may return one of its inputs.
    for (const Tensor& result : results)
        for (const Tensor& input : inputs)
            if (input.defined() && input.state()->value.state() == result.state()->value.state())
                detail::share_memory(input, result);
    if (!any_requires_grad(inputs)) return;
    auto node = std::make_shared<GradNode>();
    node->name = name;
    node->sequence = detail::next_sequence();
    node->kind = kind;
    node->rule = std::move(rule);
    node->scope = Scope::path();
    node->edges.reserve(inputs.size());
    for (const Tensor& input : inputs) node->edges.push_back(detail::edge_of(input));
    node->outputs.reserve(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        detail::TensorState& state = *results[i].state();
        node->outputs.push_back({state.value.shape(), state.value.dtype(), state.value.device()});
        // Integer results (indices, labels) carry no gradient.
        if (!is_floating(state.value.dtype())) continue;
        state.node = node;
        state.output = i;
    }
}

}  // namespace

std::vector<Tensor> attach_backward(std::string_view name, const std::vector<Tensor>& inputs,
                                    const std::vector<ops::LazyArray>& results, GradientRule rule, RuleKind kind) {
    std::vector<Tensor> tensors;
    tensors.reserve(results.size());
    for (const ops::LazyArray& result : results) tensors.emplace_back(result);
    join(name, inputs, tensors, std::move(rule), kind);
    return tensors;
}

Tensor attach_backward(std::string_view name, const std::vector<Tensor>& inputs, const ops::LazyArray& result,
                       GradientRule rule, RuleKind kind) {
    Tensor tensor(result);
    join(name, inputs, {&tensor, 1}, std::move(rule), kind);
    return tensor;
}

// ---- decompositions

namespace detail {
namespace {

thread_local bool composes = false;

/// Gradients of a decomposition of the saved inputs, for a rule that is differentiated again.
std::vector<Tensor> gradients_of(std::string_view name, const Decomposition& decomposition,
                                 const std::vector<Saved>& inputs, std::size_t results,
                                 const GradientContext& context) {
    std::vector<Tensor> kept, wanted, incoming;
    std::vector<std::size_t> places;
    for (const Saved& input : inputs) kept.push_back(input.get(name));
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (!context.needs(i)) continue;
        // Attached as a separate node: the graph behind one input, which may be another input, is not this function's.
        kept[i] = attach_backward(
            name, {kept[i]}, kept[i].value(),
            [](const GradientContext& of_input) { return std::vector{of_input.gradient()}; }, RuleKind::differentiable);
        places.push_back(i);
        wanted.push_back(kept[i]);
    }
    std::vector<Tensor> outputs;
    const std::vector<Tensor> all = decomposed_in_f32(decomposition, kept);
    for (std::size_t i = 0; i < results; ++i) {
        if (!all.at(i).requires_grad()) continue;
        outputs.push_back(all[i]);
        incoming.push_back(context.gradient(i));
    }
    std::vector<Tensor> gradients(inputs.size());
    if (outputs.empty()) return gradients;
    const std::vector<Tensor> made = run_backward({.outputs = outputs,
                                                   .gradients = incoming,
                                                   .inputs = wanted,
                                                   .retain_graph = true,
                                                   .create_graph = true,
                                                   .allow_unused = true,
                                                   .accumulate = false,
                                                   .stop_at_inputs = true});
    for (std::size_t i = 0; i < places.size(); ++i) gradients[places[i]] = made[i];
    return gradients;
}

}  // namespace

DecompositionScope::DecompositionScope() : before_(std::exchange(composes, true)) {}
DecompositionScope::~DecompositionScope() { composes = before_; }
bool by_decomposition() { return composes; }

std::vector<Tensor> decomposed_in_f32(const Decomposition& decomposition, const std::vector<Tensor>& inputs) {
    const auto half =
        std::ranges::find_if(inputs, [](const Tensor& x) { return x.defined() && is_16bit_float(x.dtype()); });
    if (half == inputs.end()) return decomposition(inputs);
    std::vector<Tensor> wide;
    for (const Tensor& input : inputs) wide.push_back(upcast(input));
    std::vector<Tensor> results = decomposition(wide);
    for (Tensor& result : results)
        if (result.defined() && is_floating(result.dtype())) result = result.to(half->dtype());
    return results;
}

Tensor recomputed_in_f32(std::string_view name, const Tensor& x, const std::function<Tensor(const Tensor&)>& function) {
    if (!is_16bit_float(x.dtype())) return function(x);
    Decomposition decomposition = [function](const std::vector<Tensor>& in) { return std::vector{function(in[0])}; };
    if (!any_requires_grad({x})) return decomposed_in_f32(decomposition, {x})[0];
    const Tensor made = [&] {
        const NoGrad values_alone;
        return decomposed_in_f32(decomposition, {x.detach()})[0];
    }();
    return attach_backward(
        name, {x}, made.value(),
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
    std::vector<Saved> kept(inputs.begin(), inputs.end());
    return attach_backward(
        name, inputs, results,
        [name = std::string(name), rule = std::move(rule), decomposition = std::move(decomposition),
         kept = std::move(kept), count = results.size()](const GradientContext& context) {
            return grad_enabled() ? detail::gradients_of(name, decomposition, kept, count, context) : rule(context);
        },
        RuleKind::differentiable);
}

// ---- saved values

Saved::Saved(const Tensor& input) {
    if (!input.defined()) return;
    value_ = input.value();
    const detail::TensorState& state = *input.state();
    if (state.node) {
        node_ = state.node;
        output_ = state.output;
    } else if (state.requires_grad) {
        leaf_ = input;
    }
    // Elements that have not been computed cannot have been written.
    if (value_.computed()) version_ = value_.view().buffer.version();
}

Saved::~Saved() {
    if (node_) detail::release_flat([this](auto& list) { list.push_back(std::move(node_)); });
}

Saved Saved::result(const ops::LazyArray& value) {
    Saved saved;
    saved.value_ = value;
    if (value.computed()) saved.version_ = value.view().buffer.version();
    return saved;
}

std::uint64_t Saved::wanted_version() const { return version_ ? *version_ : ops::first_version(value_); }

bool Saved::is_unmodified() const {
    return value_ && (!value_.computed() || value_.view().buffer.version() == wanted_version());
}

bool Saved::reassigned() const { return leaf_.defined() && leaf_.value().state() != value_.state(); }

void Saved::require_intact(std::string_view function) const {
    if (value_ && !is_unmodified())
        throw ValueError(
            fmt::format("backward of {}: a tensor of shape {} that it needs was written in place after the forward "
                        "call (version {}, expected {}); write to a clone() instead",
                        function, value_.shape().str(), value_.view().buffer.version(), wanted_version()));
}

Tensor Saved::get(std::string_view function) const {
    require_intact(function);
    if (!value_) return {};
    if (leaf_.defined() && !reassigned()) return leaf_;
    if (leaf_.defined() && grad_enabled())
        throw ValueError(
            fmt::format("backward of {}: a tensor of shape {} that it needs was replaced by assign() after "
                        "the forward call, so "
                        "that its higher-order gradients are unknown",
                        function, leaf_.shape().str()));
    Tensor out(value_);
    out.state()->node = node_;
    out.state()->output = output_;
    return out;
}

ops::LazyArray Saved::value(std::string_view function) const {
    require_intact(function);
    if (leaf_.defined()) (void)leaf_.value();  // reports the use to the capture tracker
    return value_;
}

// ---- rules

const Tensor& GradientContext::gradient(std::size_t index) const { return call_->gradients[index]; }
Tensor GradientContext::release_gradient(std::size_t index) const { return std::exchange(call_->gradients[index], {}); }
bool GradientContext::needs(std::size_t input) const { return call_->needs[input]; }

Tensor GradientContext::output(const Saved& kept, std::string_view function, std::size_t index) const {
    Tensor out = kept.get(function);
    if (!grad_enabled() || !out.defined()) return out;
    out = Tensor(out.value());
    out.state()->node = call_->node;
    out.state()->output = index;
    return out;
}

ops::Expression detail::through_activation(const GradientContext& context, std::size_t input, const ops::Expression& g,
                                           const ops::Expression& elements) {
    RuleCall& call = context.call();
    if (call.activations[input] == nullptr) return {};
    const std::shared_ptr<GradNode>& node = *call.activations[input];
    const Activation& activation = *node->activation;
    if (ops::info(activation.function).of_gradient[0].needs_input[0]) return {};
    call.passed[input] = true;
    if (!call.retain_graph && !ops::is_shared(node)) node->rule = nullptr;
    return ops::Expression::gradient(activation.function, 0, g, std::array{ops::Expression()}, elements,
                                     activation.parameters);
}

void GradientContext::accumulate_region(std::size_t input, Tensor gradient,
                                        std::function<ops::View(const ops::View&)> region) const {
    if (needs(input)) call_->regions.push_back({input, std::move(gradient), std::move(region)});
}

// ---- custom functions

std::vector<Tensor> CustomFunction::operator()(const std::vector<Tensor>& inputs) const {
    if (!forward || (!backward && any_requires_grad(inputs)))
        throw ValueError(fmt::format("{}: expected the functions forward and backward, got no {}", name,
                                     forward ? "backward" : "forward"));
    std::vector<Tensor> outputs;
    {
        const NoGrad no_grad;
        outputs = forward(inputs);
    }
    std::vector<ops::LazyArray> values;
    for (const Tensor& output : outputs) {
        if (!output.defined())
            throw ValueError(fmt::format("{}: expected tensors from forward, got an undefined one", name));
        values.push_back(output.value());
    }
    if (!any_requires_grad(inputs)) return outputs;
    std::vector<Saved> saved_inputs, saved_outputs;
    for (const Tensor& input : inputs) saved_inputs.emplace_back(input);
    for (const ops::LazyArray& value : values) saved_outputs.push_back(Saved::result(value));
    const std::size_t count = outputs.size();
    return attach_backward(
        name, inputs, values,
        [name = name, backward = backward, saved_inputs, saved_outputs, count](const GradientContext& context) {
            std::vector<Tensor> in, out, gradients;
            for (const Saved& saved : saved_inputs) in.push_back(saved.get(name));
            for (const Saved& saved : saved_outputs) out.push_back(saved.get(name));
            for (std::size_t i = 0; i < count; ++i) gradients.push_back(context.gradient(i));
            return backward(in, out, gradients);
        });
}

}  // namespace declivity
