#include <declivity/tensor/tensor.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "backward.hpp"
#include "runtime/recorder.hpp"
#include "step_notes.hpp"
#include "tensor_state.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/value.hpp"

namespace declivity {
namespace {

std::mutex default_mutex;
std::optional<Device>& default_slot() {
    static std::optional<Device> device;
    return device;
}

detail::TensorState& checked_state(const std::shared_ptr<detail::TensorState>& state, std::string_view function) {
    if (!state) throw ValueError(fmt::format("{}: wants a tensor, got an undefined one", function));
    return *state;
}

/// A recorded step must know whose elements it works on.
const ops::Value& used_value(const std::shared_ptr<detail::TensorState>& state, std::string_view function) {
    const ops::Value& value = checked_state(state, function).value;
    if (auto* const notes = detail::StepNotes::current()) notes->uses(state);
    return value;
}

/// Memory that may be written in place.
ops::View writable(const Tensor& tensor, std::string_view function) {
    const ops::View& view = tensor.view();
    for (int axis = 0; axis < view.rank(); ++axis)
        if (view.shape[axis] > 1 && view.strides[axis] == 0)
            throw ShapeError(
                fmt::format("{}: wants a tensor each of whose elements lies in one place, got shape {} with strides {} "
                            "(write to a clone() of an "
                            "expanded tensor)",
                            function, view.shape.str(), view.strides.str()));
    return view;
}

/// Whether a write of what is made from `sources` is a part of the graph, which gives the tensor another value.
/// @throws ValueError where that cannot be
bool written_in_graph(const Tensor& tensor, std::string_view function, const Tensor& source = {}) {
    const detail::TensorState& state = checked_state(tensor.state(), function);
    if (!recorded({tensor, source})) return false;
    if (state.requires_grad)
        throw ValueError(
            fmt::format("{}: wants a tensor whose gradient is not being recorded, got one of shape {} that requires a "
                        "gradient; write under NoGrad, or to a detach()ed clone",
                        function, tensor.shape().str()));
    if (detail::shares_memory(state))
        throw ValueError(
            fmt::format("{}: wants a tensor whose memory no other shares where a graph is recorded, got one of shape "
                        "{} beside a view (slice, reshape, detach, ...) that would have to change with it; let go of "
                        "the other, write to a clone(), or to a part by slice_scatter()",
                        function, tensor.shape().str()));
    if (detail::StepNotes::current() != nullptr && ops::recorder_of(state.value) != Recorder::current_number())
        Recorder::current()->refuse(fmt::format(
            "{} under a graph to a tensor that was there before the step, which would be another tensor after it",
            function));
    return true;
}

/// All handles of the tensor stand for another one from now on.
void become(const Tensor& tensor, Tensor made) {
    detail::TensorState& state = *tensor.state();
    // What it was ends last: it may lead to a whole graph.
    const detail::TensorState before{.value = std::exchange(state.value, made.value()),
                                     .node = std::exchange(state.node, made.state()->node)};
    state.output = made.state()->output;
    state.shares.reset();
    made = {};
    if (auto* const notes = detail::StepNotes::current()) notes->takes_value(tensor.state());
}

/// Elements that nobody else stands for: those of `source` where it is given away.
Tensor own_elements(Tensor source) {
    const detail::TensorState& state = *source.state();
    const ops::Value& value = state.value;
    const bool own = !ops::others_hold(source.state()) && !state.requires_grad && !state.shares &&
                     (state.node != nullptr || !ops::others_hold(value)) &&
                     (!value.computed() || (!ops::others_hold(value.view().buffer) && value.view().dense()));
    return own ? source : source.clone();
}

void require_stretches(std::string_view function, const Shape& made, const Shape& wanted, const Tensor& other) {
    if (!(made == wanted))
        throw ShapeError(
            fmt::format("{}: wants a shape that stretches to {}, got {}", function, wanted.str(), other.shape().str()));
}

void fill_in_place(std::string_view name, const Tensor& to, double value) {
    checked_state(to.state(), name);
    const FunctionCall call(name, {{"x", to}}, {{"value", value}});
    call.results({to});
    if (written_in_graph(to, name)) {
        const ops::View filled = ops::View::make(to.device(), to.dtype(), to.shape());
        ops::fill(filled, value, name);
        return become(to, Tensor(filled));
    }
    ops::fill(writable(to, name), value, name);
    to.mark_written();
}

void apply_in_place(ops::Function function, std::string_view name, const Tensor& to, const Tensor& other) {
    checked_state(to.state(), name);
    checked_state(other.state(), name);
    const FunctionCall call(name, {{"x", to}, {"other", other}});
    call.results({to});
    if (written_in_graph(to, name, other)) {
        Tensor made = elementwise(function, {to, other}, {}, name);
        require_stretches(name, made.shape(), to.shape(), other);
        return become(to, std::move(made));
    }
    const ops::View place = writable(to, name);
    const ops::Expression inputs[] = {place, other.view()};
    const auto made = ops::Expression::apply(function, inputs, {}, name);
    require_stretches(name, made.shape(), place.shape, other);
    ops::evaluate(made, place);
    to.mark_written();
}

}  // namespace

Device default_device() {
    detail::refuse_after_fork("default_device");
    const std::scoped_lock lock(default_mutex);
    if (!default_slot()) default_slot() = Device::best();
    return *default_slot();
}

void set_default_device(const Device& device) {
    detail::refuse_after_fork("set_default_device");
    const std::scoped_lock lock(default_mutex);
    default_slot() = device;
}

Tensor::Tensor(const ops::Value& value) : state_(std::make_shared<detail::TensorState>()) { state_->value = value; }

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const std::optional<Device>& device) {
    return from_bytes("from_bytes", bytes, dtype, shape, device);
}

Tensor Tensor::from_bytes(std::string_view function, std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const std::optional<Device>& device) {
    const std::string name = fmt::format("Tensor::{}", function);
    const std::size_t wanted = ops::bytes_of(shape, dtype, name);
    if (bytes.size() != wanted && function == "from")
        throw ShapeError(fmt::format("{}: wants {} values for shape {}, got {}", name, shape.numel(), shape.str(),
                                     bytes.size() / size_of(dtype)));
    if (bytes.size() != wanted)
        throw ShapeError(fmt::format("{}: wants {} bytes for shape {} of {}, got {}", name, wanted, shape.str(),
                                     name_of(dtype), bytes.size()));
    const ops::View view = ops::View::make(device ? *device : default_device(), dtype, shape);
    upload(view.buffer, 0, bytes);
    return Tensor(view);
}

const Shape& Tensor::shape() const { return shape_for("shape"); }
const Shape& Tensor::shape_for(std::string_view function) const {
    return checked_state(state_, function).value.shape();
}
DType Tensor::dtype() const { return checked_state(state_, "dtype").value.dtype(); }
Device Tensor::device() const { return checked_state(state_, "device").value.device(); }
std::int64_t Tensor::size(std::int64_t axis) const {
    const Shape& sizes = shape_for("size");
    return sizes[normalize_axis("size", axis, sizes.rank())];
}

const ops::View& Tensor::view() const {
    const ops::View& view = used_value(state_, "view").view();
    view.buffer.launch_readers();
    return view;
}
ops::View Tensor::dense_view() const { return ops::dense_copy_if_needed(used_value(state_, "dense_view").view()); }
const ops::Value& Tensor::value() const { return used_value(state_, "value"); }

void Tensor::read_bytes(std::string_view function, std::span<std::byte> bytes, DType dtype) const {
    const ops::Value& from = checked_state(state_, function).value;
    const bool same = dtype == from.dtype() || (dtype == DType::u8 && from.dtype() == DType::boolean);
    if (!same)
        throw TypeError(
            fmt::format("{}: wants the tensor's type, {}, got {}", function, name_of(from.dtype()), name_of(dtype)));
    if (function == "item" && from.shape().numel() != 1)
        throw ShapeError(fmt::format("item: wants a tensor of one element, got shape {}", from.shape().str()));
    if (bytes.size() != ops::bytes_of(from.shape(), from.dtype()))
        throw ShapeError(fmt::format("{}: wants room for {} elements (shape {}), got {}", function,
                                     from.shape().numel(), from.shape().str(), bytes.size() / size_of(dtype)));
    const ops::View dense = dense_view();
    read(dense.buffer, static_cast<std::size_t>(dense.offset) * size_of(dense.dtype), bytes);
}

Tensor Tensor::to(const Device& target) const {
    const Device origin = checked_state(state_, "to").value.device();
    if (origin == target) return *this;
    const std::string place = target.info().id;
    const FunctionCall call("to", {{"x", *this}}, {{"device", place}});
    // Contexts of different platforms share no memory: by way of the host.
    std::vector<std::byte> bytes(ops::bytes_of(shape(), dtype()));
    read_bytes("to", bytes, dtype());
    const Tensor there = from_bytes(bytes, dtype(), shape(), target);
    return call.result(differentiable(
        "to", {*this}, there.value(),
        [origin](const GradientContext& context) { return std::vector{context.gradient().to(origin)}; },
        RuleKind::composed));
}

Tensor Tensor::to(DType target) const {
    const ops::Value& from = used_value(state_, "to");
    if (from.dtype() == target) return *this;
    const FunctionCall call("to", {{"x", *this}}, {{"dtype", target}});
    ops::require_supported(from.device(), target);
    const ops::Value converted = ops::value_of(ops::Expression::cast(from, target), from.device());
    if (!is_floating(target)) return call.result(Tensor(converted));
    return call.result(differentiable(
        "to", {*this}, converted,
        [origin = from.dtype()](const GradientContext& context) { return std::vector{context.gradient().to(origin)}; },
        RuleKind::composed));
}

Tensor Tensor::clone() const {
    checked_state(state_, "clone");
    const FunctionCall call("clone", {{"x", *this}});
    const ops::View& from = used_value(state_, "clone").view();
    const ops::View out = ops::View::make(from.device(), from.dtype, from.shape);
    ops::copy(from, out);
    if (!recorded({*this})) return call.result(Tensor(out));
    return call.result(differentiable(
        "clone", {*this}, out, [](const GradientContext& context) { return std::vector{context.take_gradient()}; },
        RuleKind::composed));
}

// ---- gradients

bool Tensor::requires_grad() const {
    const auto& state = checked_state(state_, "requires_grad");
    return state.requires_grad || state.node != nullptr;
}

Tensor& Tensor::set_requires_grad(bool wanted) {
    auto& state = checked_state(state_, "set_requires_grad");
    if (state.node)
        throw ValueError(
            fmt::format("set_requires_grad: wants a leaf, got the result of {}; detach() it first", state.node->name));
    if (wanted && !is_floating(state.value.dtype()))
        throw TypeError(
            fmt::format("set_requires_grad: wants f32, f64, f16 or bf16, got {}", name_of(state.value.dtype())));
    state.requires_grad = wanted;
    return *this;
}

bool Tensor::is_leaf() const { return checked_state(state_, "is_leaf").node == nullptr; }
Tensor Tensor::grad() const {
    const auto& state = checked_state(state_, "grad");
    if (auto* const notes = detail::StepNotes::current()) notes->reads_grad(state_);
    const auto lock = detail::lock_grad(state);
    return state.grad;
}

void Tensor::set_grad(const Tensor& gradient) {
    auto& state = checked_state(state_, "set_grad");
    if (gradient.defined()) {
        ops::require_shape("set_grad", "the gradient", gradient.shape(), shape());
        ops::require_alike("set_grad", "gradient", gradient.view(), "tensor", view());
    }
    if (auto* const notes = detail::StepNotes::current()) notes->writes_grad(state_);
    detail::exchange_grad(state, gradient);
}

void Tensor::zero_grad() {
    auto& state = checked_state(state_, "zero_grad");
    if (auto* const notes = detail::StepNotes::current()) notes->writes_grad(state_);
    detail::exchange_grad(state, {});
}

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
    detail::run_backward({.outputs = {*this}, .gradients = {gradient}, .inputs = {}, .retain_graph = retain_graph});
}

Tensor Tensor::detach() const {
    Tensor out(used_value(state_, "detach"));
    detail::share_memory(*this, out);
    return out;
}

namespace {

int next_hook() {
    static std::atomic<int> last{0};  // no number twice, so that a stale one removes nobody else's hook
    return ++last;
}

}  // namespace

int Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
    auto& state = checked_state(state_, "register_hook");
    if (!requires_grad())
        throw ValueError("register_hook: wants a tensor that requires a gradient, got one that does not");
    if (!hook) throw ValueError("register_hook: wants a function, got an empty one");
    auto& hooks = state.node ? state.node->outputs[state.output].hooks : state.hooks;
    if (!state.node) detail::leaves_have_hooks() = true;
    return hooks.emplace_back(next_hook(), std::move(hook)).first;
}

int Tensor::register_post_accumulate_grad_hook(std::function<void(Tensor&)> hook) {
    constexpr auto* name = "register_post_accumulate_grad_hook";
    auto& state = checked_state(state_, name);
    if (state.node)
        throw ValueError(
            fmt::format("{}: wants a leaf, got the result of {}, which has no grad", name, state.node->name));
    if (!state.requires_grad)
        throw ValueError(fmt::format("{}: wants a tensor that requires a gradient, got one that does not", name));
    if (!hook) throw ValueError(fmt::format("{}: wants a function, got an empty one", name));
    detail::leaves_have_hooks() = true;
    return state.after_grad.emplace_back(next_hook(), std::move(hook)).first;
}

void Tensor::remove_hook(int number) {
    auto& state = checked_state(state_, "remove_hook");
    const auto is = [number](const auto& hook) { return hook.first == number; };
    std::erase_if(state.node ? state.node->outputs[state.output].hooks : state.hooks, is);
    std::erase_if(state.after_grad, is);
}

// ---- in place

void Tensor::mark_written() const { used_value(state_, "mark_written").view().buffer.mark_written(); }

void Tensor::assign(const Tensor& other) {
    auto& state = checked_state(state_, "assign");
    if (state.node) throw ValueError(fmt::format("assign: wants a leaf, got the result of {}", state.node->name));
    const auto& from = checked_state(other.state_, "assign");
    if (auto* const notes = detail::StepNotes::current()) {
        notes->uses(state_);
        notes->uses(other.state_);
        notes->writes_grad(state_);
    }
    state.value = from.value;
    state.shares.reset();
    detail::share_memory(other, *this);
    detail::exchange_grad(state, {});
}

Tensor& Tensor::copy_(Tensor source) {
    const ops::Value& to = checked_state(state_, "copy_").value;
    checked_state(source.state(), "copy_");
    const FunctionCall call("copy_", {{"x", *this}, {"source", source}});
    call.results({*this});
    ops::require_shape("copy_", "the source", source.shape(), to.shape());
    if (source.dtype() != to.dtype())
        throw TypeError(
            fmt::format("copy_: wants a source of type {}, got {}", name_of(to.dtype()), name_of(source.dtype())));
    const Device target = to.device();
    if (written_in_graph(*this, "copy_", source)) {
        if (!(source.device() == target)) source = source.to(target);
        become(*this, own_elements(std::exchange(source, {})));
        return *this;
    }
    const ops::View place = writable(*this, "copy_");
    const NoGrad no_grad;
    if (!(source.device() == target)) source = source.to(target);
    ops::store("copy_", detail::take_value(std::exchange(source, {})), place);
    return *this;
}

Tensor& Tensor::fill_(double value) {
    fill_in_place("fill_", *this, value);
    return *this;
}

Tensor& Tensor::zero_() {
    fill_in_place("zero_", *this, 0);
    return *this;
}

Tensor& Tensor::add_(const Tensor& other) {
    apply_in_place(ops::Function::add, "add_", *this, other);
    return *this;
}
Tensor& Tensor::sub_(const Tensor& other) {
    apply_in_place(ops::Function::sub, "sub_", *this, other);
    return *this;
}
Tensor& Tensor::mul_(const Tensor& other) {
    apply_in_place(ops::Function::mul, "mul_", *this, other);
    return *this;
}
Tensor& Tensor::div_(const Tensor& other) {
    apply_in_place(ops::Function::div, "div_", *this, other);
    return *this;
}

Tensor& Tensor::mul_(double factor) {
    checked_state(state_, "mul_");
    const FunctionCall call("mul_", {{"x", *this}}, {{"factor", factor}});
    call.results({*this});
    if (written_in_graph(*this, "mul_")) {
        become(*this, elementwise(ops::Function::mul_scalar, {*this}, {factor}, "mul_"));
        return *this;
    }
    const ops::View to = writable(*this, "mul_");
    const ops::Expression inputs[] = {to};
    const double parameters[] = {factor};
    ops::evaluate(ops::Expression::apply(ops::Function::mul_scalar, inputs, parameters, "mul_"), to);
    mark_written();
    return *this;
}

}  // namespace declivity
