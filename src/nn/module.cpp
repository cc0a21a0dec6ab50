#include <declivity/nn/module.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "convert.hpp"
#include "parameter_slot.hpp"
#include "tensor/access.hpp"
#include "tensor/load_state.hpp"

namespace declivity::nn {
namespace {

std::string join_path(std::string_view prefix, std::string_view name) {
    return prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
}

/// Each tensor once, with the first of its names.
std::vector<NamedTensor> deduplicated(std::vector<NamedTensor> tensors) {
    std::unordered_set<const void*> seen;
    std::erase_if(tensors, [&](const NamedTensor& item) { return !seen.insert(state_of(item.tensor).get()).second; });
    return tensors;
}

}  // namespace

Module::~Module() = default;

Module::Module(Module&& from) noexcept
    : scope_name_(std::move(from.scope_name_)),
      parameters_(std::move(from.parameters_)),
      buffers_(std::move(from.buffers_)),
      children_(std::move(from.children_)),
      training_(from.training_),
      external_(from.external_),
      reported_(from.reported_),
      changes_(from.changes_),
      lifetime_token_(std::move(from.lifetime_token_)),
      placed_(from.placed_),
      moved_from_(std::exchange(from.moved_from_, true)) {
    adopt_children();
}

Module& Module::operator=(Module&& from) noexcept {
    if (this == &from) return *this;
    scope_name_ = std::move(from.scope_name_);
    parameters_ = std::move(from.parameters_);
    buffers_ = std::move(from.buffers_);
    children_ = std::move(from.children_);
    training_ = from.training_;
    external_ = from.external_;
    reported_ = from.reported_;
    changes_ = from.changes_;
    lifetime_token_ = std::move(from.lifetime_token_);
    placed_ = from.placed_;
    moved_from_ = std::exchange(from.moved_from_, true);
    adopt_children();
    if (parent_ != nullptr) set_mode(parent_->training_);  // a layer that replaces another is added like any other
    return *this;
}

void Module::adopt_children() noexcept {
    for (const auto& [name, child] : children_) child->parent_ = this;
}

void Module::set_mode(bool training) noexcept {
    training_ = training;
    for (const auto& [name, child] : children_) child->set_mode(training);
}

void Module::require_in_place(std::string_view path) const {
    if (!moved_from_) return;
    const std::string type = type_name();  // may have been moved as well
    throw ValueError(fmt::format("{}{}: expected a module, got one that was moved from", type.empty() ? "Module" : type,
                                 path.empty() ? "" : fmt::format(" '{}'", path)));
}

Module::LifetimeToken& Module::LifetimeToken::operator=(LifetimeToken&& other) noexcept {
    token_.reset();
    other.token_.reset();
    return *this;
}

std::weak_ptr<const void> Module::LifetimeToken::watch() const {
    static std::mutex mutex;  // several threads may capture with one module
    const std::scoped_lock lock(mutex);
    if (!token_) token_ = std::make_shared<char>();
    return token_;
}

const std::type_info& Module::capture_safe() const { return replayable(); }
const std::type_info& Module::replayable() const { return typeid(void); }

std::string Module::not_capture_safe() const {
    const auto find = [](const auto& self, const Module& module, const std::string& path) -> std::string {
        module.require_in_place(path);
        const std::type_info& declared = module.capture_safe();
        if (declared != typeid(module)) {
            const std::string type = declared == typeid(void)
                                         ? module.type_name()
                                         : fmt::format("a class derived from {}", module.type_name());
            return path.empty() ? fmt::format("the model ({})", type) : fmt::format("module '{}' ({})", path, type);
        }
        for (const auto& [name, child] : module.children_)
            if (std::string found = self(self, *child, join_path(path, name)); !found.empty()) return found;
        return {};
    };
    return find(find, *this, {});
}

std::int64_t Module::multiply_adds(const std::vector<Tensor>&, const std::vector<Tensor>&) const { return 0; }
std::string Module::type_name() const { return "Module"; }

void Module::check_name(std::string_view name) const {
    require_in_place();
    const auto is_taken = [name](const auto& list, auto get) {
        return std::ranges::any_of(list, [&](const auto& item) { return get(item) == name; });
    };
    const auto tensor_name = [](const auto& item) -> std::string_view { return item.name; };
    const auto child_name = [](const auto& element) -> std::string_view { return element.first; };
    if (name.empty() || name.find('.') != std::string_view::npos)
        throw ValueError(fmt::format("{}: expected a name without dots, got \"{}\"", type_name(), name));
    if (is_taken(parameters_, tensor_name) || is_taken(buffers_, tensor_name) || is_taken(children_, child_name))
        throw ValueError(fmt::format("{}: expected each name once, got \"{}\" again", type_name(), name));
}

Parameter Module::parameter(std::string_view name, Tensor value) {
    check_name(name);
    if (!value.defined()) return {};
    if (!is_floating(value.dtype()))
        throw TypeError(fmt::format("{}: expected the parameter \"{}\" of f32, f64, f16 or bf16, got {}", type_name(),
                                    name, name_of(value.dtype())));
    const FunctionScope function("parameter");
    value.set_requires_grad();
    parameters_.push_back({std::string(name), std::make_shared<detail::ParameterSlot>(std::move(value))});
    return Parameter(parameters_.back().slot);
}

Tensor Module::buffer(std::string_view name, Tensor value) {
    check_name(name);
    if (value.defined()) buffers_.push_back({std::string(name), value});
    return value;
}

void Module::add_child(std::string_view name, std::unique_ptr<Module> module) {
    check_name(name);
    if (!module) throw ValueError(fmt::format("{}: expected a module as '{}', got null", type_name(), name));
    module->require_in_place(name);
    module->parent_ = this;
    module->set_mode(training_);
    module->set_scope_name(is_called() || scope_name_.empty() ? std::string(name) : join_path(scope_name_, name));
    children_.emplace_back(std::string(name), std::move(module));
}

void Module::set_scope_name(std::string name) {
    scope_name_ = std::move(name);
    if (is_called()) return;
    for (const auto& [child_name, child] : children_) child->set_scope_name(join_path(scope_name_, child_name));
}

void Module::collect(std::string_view prefix, std::vector<NamedTensor>* parameters,
                     std::vector<NamedTensor>* buffers) const {
    require_in_place(prefix);
    guard_children();
    if (parameters != nullptr)
        for (const OwnParameter& parameter : parameters_)
            if (parameter.slot->parametrized == nullptr)
                parameters->push_back({join_path(prefix, parameter.name), parameter.slot->tensor});
    if (buffers != nullptr)
        for (const NamedTensor& buffer : buffers_) buffers->push_back({join_path(prefix, buffer.name), buffer.tensor});
    for (const auto& [name, child] : children_) child->collect(join_path(prefix, name), parameters, buffers);
}

std::vector<NamedTensor> Module::named_parameters() const {
    std::vector<NamedTensor> out;
    collect("", &out, nullptr);
    return deduplicated(std::move(out));
}

std::vector<NamedTensor> Module::named_buffers() const {
    std::vector<NamedTensor> out;
    collect("", nullptr, &out);
    return deduplicated(std::move(out));
}

std::vector<Tensor> Module::parameters() const {
    std::vector<Tensor> out;
    for (NamedTensor& named_parameter : named_parameters()) out.push_back(std::move(named_parameter.tensor));
    return out;
}

std::vector<std::pair<std::string, Module*>> Module::children() const {
    require_in_place();
    guard_children();
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
    forget_places();
    detail::convert(state_dict(), [&](const Tensor& tensor) { return tensor.to(device); });
}

void Module::to(DType dtype) {
    if (!is_floating(dtype))
        throw TypeError(fmt::format("Module::to: expected a floating type, got {}", name_of(dtype)));
    forget_places();
    detail::convert(state_dict(),
                    [&](const Tensor& tensor) { return is_floating(tensor.dtype()) ? tensor.to(dtype) : tensor; });
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

LoadedState Module::load_state_dict(const StateDict& state, bool strict) {
    return declivity::detail::load_state(type_name(), state_dict(), state, strict);
}

TensorOptions Module::options_of_tensors() const {
    const StateDict tensors = state_dict();
    return tensors.empty() ? TensorOptions{} : TensorOptions{tensors[0].tensor.dtype(), tensors[0].tensor.device()};
}

}  // namespace declivity::nn
