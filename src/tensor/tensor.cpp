#include <declivity/tensor/tensor.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/default_device.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>

#include "backward.hpp"
#include "runtime/capture.hpp"
#include "capture_tracker.hpp"
#include "in_place.hpp"
#include "tensor_state.hpp"
#include "ops/engine/expression.hpp"
#include "ops/engine/lazy_array.hpp"

namespace declivity {

using detail::checked_state;
using detail::used_value;

namespace {

constinit std::atomic<detail::DeviceState*> default_of_process{nullptr};
constinit thread_local detail::DeviceState* default_of_thread = nullptr;

}  // namespace

Device default_device() {
    detail::refuse_after_fork("default_device");
    if (default_of_thread != nullptr) return Device(default_of_thread);
    detail::DeviceState* device = default_of_process.load(std::memory_order_acquire);
    if (device != nullptr) return Device(device);
    detail::DeviceState* const best = &Device::best().state();
    return Device(default_of_process.compare_exchange_strong(device, best) ? best : device);
}

void set_default_device(const Device& device) {
    detail::refuse_after_fork("set_default_device");
    default_of_process.store(&device.state(), std::memory_order_release);
}

DefaultDevice::DefaultDevice(const Device& device) : before_(std::exchange(default_of_thread, &device.state())) {}
DefaultDevice::~DefaultDevice() { default_of_thread = before_; }

Tensor::Tensor(const ops::LazyArray& value) : state_(std::make_shared<detail::TensorState>()) { state_->value = value; }

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const std::optional<Device>& device) {
    return from_bytes("from_bytes", bytes, dtype, shape, device);
}

Tensor Tensor::from_bytes(std::string_view function, std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const std::optional<Device>& device) {
    const std::string name = fmt::format("Tensor::{}", function);
    const std::size_t wanted = ops::bytes_of(shape, dtype, name);
    if (bytes.size() != wanted && function == "from")
        throw ShapeError(fmt::format("{}: expected {} values for shape {}, got {}", name, shape.numel(), shape.str(),
                                     bytes.size() / size_of(dtype)));
    if (bytes.size() != wanted)
        throw ShapeError(fmt::format("{}: expected {} bytes for shape {} of {}, got {}", name, wanted, shape.str(),
                                     name_of(dtype), bytes.size()));
    const ops::View view = ops::View::make(device ? *device : default_device(), dtype, shape);
    if (Capture* const capture = Capture::current(); capture != nullptr && !bytes.empty())
        capture->refuse(fmt::format("{} (an upload from the host)", name));
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
const ops::LazyArray& Tensor::value() const { return used_value(state_, "value"); }

void Tensor::read_bytes(std::string_view function, std::span<std::byte> bytes, DType dtype) const {
    const ops::LazyArray& from = checked_state(state_, function).value;
    const bool same = dtype == from.dtype() || (dtype == DType::u8 && from.dtype() == DType::boolean);
    if (!same)
        throw TypeError(
            fmt::format("{}: expected the tensor's type, {}, got {}", function, name_of(from.dtype()), name_of(dtype)));
    if (function == "item" && from.shape().numel() != 1)
        throw ShapeError(fmt::format("item: expected a tensor of one element, got shape {}", from.shape().str()));
    if (bytes.size() != ops::bytes_of(from.shape(), from.dtype()))
        throw ShapeError(fmt::format("{}: expected room for {} elements (shape {}), got {}", function,
                                     from.shape().numel(), from.shape().str(), bytes.size() / size_of(dtype)));
    const auto named = [function](const auto& call) {  // for errors of pending launches
        const FunctionScope scope(function);
        return call();
    };
    const ops::View dense = named([this] { return dense_view(); });
    if (Capture* const capture = Capture::current(); capture != nullptr && !bytes.empty())
        capture->refuse(fmt::format("{} (a read to the host)", function));
    named([&] { read(dense.buffer, static_cast<std::size_t>(dense.offset) * size_of(dense.dtype), bytes); });
}

Tensor Tensor::to(const Device& target) const {
    const Device origin = checked_state(state_, "to").value.device();
    if (origin == target) return *this;
    const std::string place = target.info().id;
    const FunctionCall call("to", {{"x", *this}}, {{"device", place}});
    // Contexts of different platforms share no memory: copied via the host.
    std::vector<std::byte> bytes(ops::bytes_of(shape(), dtype()));
    read_bytes("to", bytes, dtype());
    const Tensor there = from_bytes(bytes, dtype(), shape(), target);
    return call.result(attach_backward(
        "to", {*this}, there.value(),
        [origin](const GradientContext& context) { return std::vector{context.gradient().to(origin)}; },
        RuleKind::differentiable));
}

Tensor Tensor::to(DType target) const {
    const ops::LazyArray& from = used_value(state_, "to");
    if (from.dtype() == target) return *this;
    const FunctionCall call("to", {{"x", *this}}, {{"dtype", target}});
    ops::require_supported(from.device(), target);
    const ops::LazyArray converted = ops::make_lazy(ops::Expression::cast(from, target), from.device());
    if (!is_floating(target)) return call.result(Tensor(converted));
    return call.result(attach_backward(
        "to", {*this}, converted,
        [origin = from.dtype()](const GradientContext& context) { return std::vector{context.gradient().to(origin)}; },
        RuleKind::differentiable));
}

Tensor Tensor::clone() const {
    checked_state(state_, "clone");
    const FunctionCall call("clone", {{"x", *this}});
    const ops::View& from = used_value(state_, "clone").view();
    const ops::View out = ops::View::make(from.device(), from.dtype, from.shape);
    ops::copy(from, out);
    if (!any_requires_grad({*this})) return call.result(Tensor(out));
    return call.result(attach_backward(
        "clone", {*this}, out, [](const GradientContext& context) { return std::vector{context.release_gradient()}; },
        RuleKind::differentiable));
}

// ---- gradients

bool Tensor::requires_grad() const {
    const auto& state = checked_state(state_, "requires_grad");
    return state.requires_grad || state.node != nullptr;
}

Tensor& Tensor::set_requires_grad(bool wanted) {
    auto& state = checked_state(state_, "set_requires_grad");
    if (state.node)
        throw ValueError(fmt::format("set_requires_grad: expected a leaf, got the result of {}; detach() it first",
                                     state.node->name));
    if (wanted && !is_floating(state.value.dtype()))
        throw TypeError(
            fmt::format("set_requires_grad: expected f32, f64, f16 or bf16, got {}", name_of(state.value.dtype())));
    state.requires_grad = wanted;
    return *this;
}

bool Tensor::is_leaf() const { return checked_state(state_, "is_leaf").node == nullptr; }
Tensor Tensor::grad() const {
    const auto& state = checked_state(state_, "grad");
    if (auto* const notes = detail::CaptureTracker::current()) notes->reads_grad(state_);
    const auto lock = detail::lock_tensor(state);
    return state.grad;
}

void Tensor::set_grad(const Tensor& gradient) {
    auto& state = checked_state(state_, "set_grad");
    if (gradient.defined()) {
        ops::require_shape("set_grad", "the gradient", gradient.shape(), shape());
        ops::require_alike("set_grad", "gradient", gradient.view(), "tensor", view());
    }
    if (auto* const notes = detail::CaptureTracker::current()) notes->writes_grad(state_);
    detail::exchange_grad(state, gradient);
}

void Tensor::zero_grad() {
    auto& state = checked_state(state_, "zero_grad");
    if (auto* const notes = detail::CaptureTracker::current()) notes->writes_grad(state_);
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
    return state.after_grad.emplace_back(next_hook(), std::move(hook)).first;
}

void Tensor::remove_hook(int number) {
    auto& state = checked_state(state_, "remove_hook");
    const auto is = [number](const auto& hook) { return hook.first == number; };
    std::erase_if(state.node ? state.node->outputs[state.output].hooks : state.hooks, is);
    std::erase_if(state.after_grad, is);
}

}  // namespace declivity
