#include <declivity/nn/module.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "runtime/recorder.hpp"
#include "tensor/load_state.hpp"

namespace declivity::nn {
namespace {

thread_local const ObserveCalls::Observer* observer = nullptr;

std::string joined(std::string_view prefix, std::string_view name) {
    return prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
}

std::int64_t count(const std::vector<Tensor>& tensors) {
    std::int64_t total = 0;
    for (const Tensor& tensor : tensors) total += tensor.numel();
    return total;
}

/// Each tensor once, by the first of its names.
std::vector<NamedTensor> each_once(std::vector<NamedTensor> tensors) {
    std::unordered_set<const void*> seen;
    std::erase_if(tensors, [&](const NamedTensor& one) { return !seen.insert(one.tensor.state().get()).second; });
    return tensors;
}

}  // namespace

Module::~Module() = default;

Module::Module(Module&& from) noexcept
    : name_(std::move(from.name_)),
      parameters_(std::move(from.parameters_)),
      buffers_(std::move(from.buffers_)),
      children_(std::move(from.children_)),
      training_(from.training_),
      presence_(std::move(from.presence_)),
      placed_(from.placed_),
      moved_from_(std::exchange(from.moved_from_, true)) {}

Module& Module::operator=(Module&& from) noexcept {
    if (this == &from) return *this;
    name_ = std::move(from.name_);
    parameters_ = std::move(from.parameters_);
    buffers_ = std::move(from.buffers_);
    children_ = std::move(from.children_);
    training_ = from.training_;
    presence_ = std::move(from.presence_);
    placed_ = from.placed_;
    moved_from_ = std::exchange(from.moved_from_, true);
    return *this;
}

void Module::require_in_place(std::string_view path) const {
    if (!moved_from_) return;
    const std::string type = type_name();  // may have been moved as well
    throw ValueError(fmt::format("{}{}: wants a module, got one that was moved from", type.empty() ? "Module" : type,
                                 path.empty() ? "" : fmt::format(" '{}'", path)));
}

ObserveCalls::ObserveCalls(Observer function)
    : observer_(std::move(function)), before_(std::exchange(observer, &observer_)) {}
ObserveCalls::~ObserveCalls() { observer = before_; }

Tensor Module::operator()(Tensor of) {
    require_in_place();
    const Scope scope(name_.empty() ? type_name() : name_);
    const Tensor x = std::move(of);  // let go of at the end of this call, not of the caller's expression
    if (!x.defined()) throw ValueError(fmt::format("{}: wants a tensor, got an undefined one", type_name()));
    if (Recorder::current() != nullptr) guard_call();
    if (!std::atomic_ref(placed_).load(std::memory_order_relaxed)) place();
    Tensor out = forward(x);
    if (Recorder* const recorder = Recorder::current(); recorder != nullptr && observer != nullptr)
        recorder->refuse("an observer of calls, which a replay would not tell");
    if (observer != nullptr) (*observer)(Scope::path(), *this, x, out);
    return out;
}

Module::Presence& Module::Presence::operator=(Presence&& other) noexcept {
    token_.reset();
    other.token_.reset();
    return *this;
}

std::weak_ptr<const void> Module::Presence::watch() const {
    static std::mutex mutex;  // several threads may record with one module
    const std::scoped_lock lock(mutex);
    if (!token_) token_ = std::make_shared<char>();
    return token_;
}

/// A call that is recorded depends on the mode, on the children, and on whether somebody looks on.
void Module::guard_call() const {
    Recorder::current()->guard([here = presence_.watch(), this, training = training_, children = children_.size()] {
        return !here.expired() && training_ == training && children_.size() == children && observer == nullptr;
    });
}

const std::type_info& Module::replayable() const { return typeid(void); }

std::string Module::not_replayable() const {
    const auto find = [](const auto& self, const Module& module, const std::string& path) -> std::string {
        module.require_in_place(path);
        const std::type_info& promised = module.replayable();
        if (promised != typeid(module)) {
            const std::string type = promised == typeid(void)
                                         ? module.type_name()
                                         : fmt::format("a class derived from {}", module.type_name());
            return path.empty() ? fmt::format("the model ({})", type) : fmt::format("module '{}' ({})", path, type);
        }
        for (const auto& [name, child] : module.children_)
            if (std::string found = self(self, *child, joined(path, name)); !found.empty()) return found;
        return {};
    };
    return find(find, *this, {});
}

void Module::place() {
    for (const auto* tensors : {&parameters_, &buffers_})
        for (const NamedTensor& one : *tensors) one.tensor.value().view().buffer.move_to_scope(Scope::path());
    std::atomic_ref(placed_).store(true, std::memory_order_relaxed);  // several threads may call a module
}

std::int64_t Module::multiply_adds(const Shape&, const Shape&) const { return 0; }
std::string Module::type_name() const { return "Module"; }

void Module::check_name(std::string_view name) const {
    require_in_place();
    const auto taken = [name](const auto& list, auto get) {
        return std::ranges::any_of(list, [&](const auto& one) { return get(one) == name; });
    };
    const auto of_tensor = [](const NamedTensor& one) -> std::string_view { return one.name; };
    const auto of_child = [](const auto& one) -> std::string_view { return one.first; };
    if (name.empty() || name.find('.') != std::string_view::npos)
        throw ValueError(fmt::format("{}: wants a name without dots, got \"{}\"", type_name(), name));
    if (taken(parameters_, of_tensor) || taken(buffers_, of_tensor) || taken(children_, of_child))
        throw ValueError(fmt::format("{}: wants each name once, got \"{}\" again", type_name(), name));
}

Tensor Module::parameter(std::string_view name, Tensor value) {
    check_name(name);
    if (!value.defined()) return value;
    const FunctionScope function("parameter");
    value.set_requires_grad();
    parameters_.push_back({std::string(name), value});
    return value;
}

Tensor Module::buffer(std::string_view name, Tensor value) {
    check_name(name);
    if (value.defined()) buffers_.push_back({std::string(name), value});
    return value;
}

void Module::add_child(std::string_view name, std::unique_ptr<Module> module) {
    check_name(name);
    if (!module) throw ValueError(fmt::format("{}: wants a module as '{}', got null", type_name(), name));
    module->require_in_place(name);
    module->name_ = name;
    children_.emplace_back(std::string(name), std::move(module));
}

void Module::collect(std::string_view prefix, std::vector<NamedTensor>* parameters,
                     std::vector<NamedTensor>* buffers) const {
    require_in_place(prefix);
    if (parameters != nullptr)
        for (const NamedTensor& one : parameters_) parameters->push_back({joined(prefix, one.name), one.tensor});
    if (buffers != nullptr)
        for (const NamedTensor& one : buffers_) buffers->push_back({joined(prefix, one.name), one.tensor});
    for (const auto& [name, child] : children_) child->collect(joined(prefix, name), parameters, buffers);
}

std::vector<NamedTensor> Module::named_parameters() const {
    std::vector<NamedTensor> out;
    collect("", &out, nullptr);
    return each_once(std::move(out));
}

std::vector<NamedTensor> Module::named_buffers() const {
    std::vector<NamedTensor> out;
    collect("", nullptr, &out);
    return each_once(std::move(out));
}

std::vector<Tensor> Module::parameters() const {
    std::vector<Tensor> out;
    for (NamedTensor& one : named_parameters()) out.push_back(std::move(one.tensor));
    return out;
}

std::vector<std::pair<std::string, Module*>> Module::children() const {
    require_in_place();
    std::vector<std::pair<std::string, Module*>> out;
    for (const auto& [name, child] : children_) out.emplace_back(name, child.get());
    return out;
}

void Module::forget_places() {
    require_in_place();
    placed_ = false;
    for (const auto& [name, child] : children_) child->forget_places();
}

void Module::to(const Device& device) {
    const NoGrad no_grad;
    forget_places();
    for (NamedTensor& one : state_dict()) one.tensor.assign(one.tensor.to(device));
}

void Module::to(DType dtype) {
    if (!is_floating(dtype)) throw TypeError(fmt::format("Module::to: wants a floating type, got {}", name_of(dtype)));
    const NoGrad no_grad;
    forget_places();
    for (NamedTensor& one : state_dict())
        if (is_floating(one.tensor.dtype())) one.tensor.assign(one.tensor.to(dtype));
}

void Module::train(bool on) {
    require_in_place();
    training_ = on;
    for (const auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad() {
    for (Tensor& parameter : parameters()) parameter.zero_grad();
}

StateDict Module::state_dict() const {
    StateDict out;
    collect("", &out, &out);
    return out;
}

void Module::load_state_dict(const StateDict& state, bool strict) {
    detail::load_state(type_name(), state_dict(), state, strict);
}

std::string Module::summary(const Shape& input, std::optional<DType> dtype) {
    const auto tensors = state_dict();
    TensorOptions options =
        tensors.empty() ? TensorOptions{} : TensorOptions{tensors[0].tensor.dtype(), tensors[0].tensor.device()};
    if (dtype) options.dtype = *dtype;
    std::string out =
        fmt::format("{:<32} {:<16} {:<20} {:>12} {:>16}\n", "layer", "type", "output", "parameters", "multiply-adds");
    std::int64_t total = 0;
    const auto add_line = [&](const std::string& path, const Module& module, const Tensor& in, const Tensor& result) {
        if (!module.children_.empty()) return;
        const std::int64_t multiply_adds = module.multiply_adds(in.shape(), result.shape());
        total += multiply_adds;
        out += fmt::format("{:<32} {:<16} {:<20} {:>12} {:>16}\n", path, module.type_name(), result.shape().str(),
                           count(module.parameters()), multiply_adds);
    };
    const bool was_training = training_;
    eval();  // a summary must not touch running statistics
    try {
        const NoGrad no_grad;
        const ObserveCalls observe(add_line);
        (*this)(zeros(input, options));
    } catch (...) {
        train(was_training);
        throw;
    }
    train(was_training);
    out += fmt::format("{:<70} {:>12} {:>16}\n", fmt::format("total for an input of {}", input.str()),
                       count(parameters()), total);
    return out;
}

}  // namespace declivity::nn
