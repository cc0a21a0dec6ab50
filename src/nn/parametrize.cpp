#include <declivity/nn/parametrize.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "module_state.hpp"
#include "parameter_slot.hpp"
#include "tensor/access.hpp"

namespace declivity {

namespace nn::detail {

/// The module `parametrizations.<name>`: the originals, and the parametrizations that compute the parameter from them.
class ParametrizationList : public Module {
  public:
    [[nodiscard]] std::string type_name() const override { return "ParametrizationList"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ParametrizationList); }

    /// Originals of the first parametrization. @param was_trained whether the parameter required a gradient
    void set_originals(const std::vector<Tensor>& originals, bool was_trained, bool frozen) {
        was_trained_ = was_trained;
        for (std::size_t i = 0; i < originals.size(); ++i) {
            const std::string name = originals.size() == 1 ? "original" : fmt::format("original{}", i);
            Tensor original = parameter(name, originals[i]);
            original.set_requires_grad(was_trained && !frozen);
            originals_.push_back(original);
        }
    }
    void append(ParametrizationCalls calls) {
        calls_.push_back(std::move(calls.forward));
        add_child(std::to_string(calls_.size() - 1), std::move(calls.module));
    }
    [[nodiscard]] Tensor value() const {
        const UnobservedScope unobserved;
        Tensor out = calls_[0](originals_);
        for (std::size_t i = 1; i < calls_.size(); ++i) out = calls_[i]({out});
        return out;
    }
    void freeze() {
        for (Tensor& original : originals_) original.set_requires_grad(false);
    }
    [[nodiscard]] const std::vector<Tensor>& originals() const noexcept { return originals_; }
    [[nodiscard]] bool was_trained() const noexcept { return was_trained_; }

  private:
    std::vector<Tensor> originals_;
    std::vector<std::function<Tensor(const std::vector<Tensor>&)>> calls_;
    bool was_trained_ = true;
};

namespace {

/// The module `parametrizations`.
class ParametrizationLists : public Module {
  public:
    [[nodiscard]] std::string type_name() const override { return "Parametrizations"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ParametrizationLists); }
};

constexpr std::string_view kChild = "parametrizations";

/// @throws ValueError unless `value` can replace `parameter`
void require_like(const Module& module, std::string_view name, const Tensor& parameter, const Tensor& value) {
    if (!value.defined())
        throw ValueError(
            fmt::format("register_parametrization: expected a value of '{}' of {}, got an undefined tensor", name,
                        module.type_name()));
    if (!(value.shape() == parameter.shape()) || value.dtype() != parameter.dtype() ||
        value.device() != parameter.device())
        throw ValueError(fmt::format(
            "register_parametrization: expected a parametrization that keeps the type, shape and device of '{}' of {}, "
            "{} {} on {}, got {} {} on {}",
            name, module.type_name(), name_of(parameter.dtype()), parameter.shape().str(), parameter.device().info().id,
            name_of(value.dtype()), value.shape().str(), value.device().info().id));
}

/// @throws ValueError naming `function` if there is no parameter of this name
const std::shared_ptr<ParameterSlot>& find_slot(std::string_view function, const Module& module,
                                                std::string_view name) {
    const auto& parameters = ModuleState::of(module).parameters;
    const auto found = std::ranges::find(parameters, name, &ModuleState::OwnParameter::name);
    if (found == parameters.end()) {
        std::string names;
        for (const auto& parameter : parameters)
            names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", parameter.name);
        throw ValueError(fmt::format("{}: expected a parameter of {} ({}), got \"{}\"", function, module.type_name(),
                                     names.empty() ? "it has none" : names, name));
    }
    return found->slot;
}

Module* find_child(Module& module, std::string_view name) {
    auto& children = ModuleState::of(module).children;
    const auto found = std::ranges::find(children, name, &ModuleState::Child::name);
    return found == children.end() ? nullptr : found->module.get();
}

void erase_child(Module& module, std::string_view name) {
    std::erase_if(ModuleState::of(module).children, [name](const auto& child) { return child.name == name; });
}

/// Invalidates captured steps, and updates the memory scope of the module.
void mark_changed(Module& module) {
    ModuleState& state = ModuleState::of(module);
    ++state.changes;
    state.attributed.store(false, std::memory_order_relaxed);
}

void add_list(Module& module, std::string_view name, std::unique_ptr<ParametrizationList> list) {
    Module* container = find_child(module, kChild);
    if (container == nullptr) {
        ModuleState::add_child(module, kChild, std::make_unique<ParametrizationLists>());
        container = find_child(module, kChild);
    }
    ModuleState::add_child(*container, name, std::move(list));
    mark_changed(module);
}

void remove_list(Module& module, std::string_view name) {
    Module& container = *find_child(module, kChild);
    erase_child(container, name);
    if (ModuleState::of(container).children.empty()) erase_child(module, kChild);
    mark_changed(module);
}

}  // namespace

}  // namespace nn::detail

namespace nn {

using detail::ParametrizationCalls;
using detail::ParametrizationList;

bool Module::is_parametrized(std::string_view name) const {
    if (name.empty())
        return state_ != nullptr && std::ranges::any_of(state_->parameters, [](const auto& parameter) {
                   return parameter.slot->parametrized != nullptr;
               });
    return detail::find_slot("is_parametrized", *this, name)->parametrized != nullptr;
}

Tensor Module::parameter_value(std::string_view name) const {
    return Parameter(detail::find_slot("parameter_value", *this, name)).value();
}

void detail::register_parametrization(Module& module, std::string_view name, ParametrizationCalls calls) {
    constexpr std::string_view function = "register_parametrization";
    const auto& slot = detail::find_slot(function, module, name);
    if (slot.use_count() < 2)
        throw ValueError(
            fmt::format("{}: expected a parameter stored as nn::Parameter, got '{}' of {}, which stores a Tensor",
                        function, name, module.type_name()));
    const NoGrad no_grad;
    const UnobservedScope unobserved;
    calls.module->train(module.training());  // it is called before it is a child
    if (slot->parametrized != nullptr) {
        if (calls.originals != 1)
            throw ValueError(
                fmt::format("{}: expected a further parametrization of '{}' to take one tensor, got one that takes {}",
                            function, name, calls.originals));
        const Tensor value = slot->parametrized->value();
        require_like(module, name, value, calls.forward({value}));
        if (calls.freezes_originals) slot->parametrized->freeze();
        slot->parametrized->append(std::move(calls));
        mark_changed(module);
        return;
    }
    const Tensor value = slot->tensor;
    std::vector<Tensor> originals = calls.right_inverse ? calls.right_inverse(value) : std::vector{value};
    if (originals.size() != calls.originals)
        throw ValueError(fmt::format(
            "{}: expected a right_inverse that returns {} tensors, as many as the parametrization takes, got {}",
            function, calls.originals, originals.size()));
    require_like(module, name, value, calls.forward(originals));
    for (Tensor& original : originals) {
        if (state_of(original) == state_of(value)) continue;
        original = original.detach().clone();
        if (originals.size() > 1) continue;
        slot->tensor.assign(original);  // the single original is the same tensor
        original = slot->tensor;
    }
    auto list = std::make_unique<ParametrizationList>();
    ParametrizationList& reference = *list;
    list->set_originals(originals, value.requires_grad(), calls.freezes_originals);
    list->append(std::move(calls));
    add_list(module, name, std::move(list));
    slot->parametrized = &reference;
}

void remove_parametrizations(Module& module, std::string_view name, bool leave_parametrized) {
    constexpr std::string_view function = "remove_parametrizations";
    detail::ParameterSlot& slot = *detail::find_slot(function, module, name);
    if (slot.parametrized == nullptr)
        throw ValueError(
            fmt::format("{}: expected a parametrized parameter, got '{}' of {}", function, name, module.type_name()));
    const ParametrizationList& list = *slot.parametrized;
    if (!leave_parametrized && list.originals().size() != 1)
        throw ValueError(fmt::format("{}: expected one original to restore, got {} of '{}'", function,
                                     list.originals().size(), name));
    const NoGrad no_grad;
    if (leave_parametrized) slot.tensor.assign(list.value().clone());
    slot.tensor.set_requires_grad(list.was_trained());
    slot.parametrized = nullptr;
    detail::remove_list(module, name);
}

LoRA::LoRA(const Tensor& weight, const LoRAOptions& options)
    : scaling_(options.alpha / static_cast<double>(options.rank)) {
    if (options.rank < 1) throw ValueError(fmt::format("LoRA: expected a rank of at least 1, got {}", options.rank));
    if (weight.rank() < 2)
        throw ShapeError(fmt::format("LoRA: expected a weight of at least 2 axes, got {}", weight.shape().str()));
    const TensorOptions like{weight.dtype(), weight.device()};
    const std::int64_t rows = weight.size(0), columns = rows == 0 ? 0 : weight.numel() / rows;
    lora_a_ = parameter("lora_A", kaiming_uniform_(zeros({options.rank, columns}, like), std::sqrt(5.0)));
    lora_b_ = parameter("lora_B", zeros({rows, options.rank}, like));
}

Tensor LoRA::forward(Tensor original) {
    const Tensor update = matmul(lora_b_, lora_a_) * scaling_;
    return original + reshape(update, original.shape());
}

LoRA& lora(Module& module, std::string_view name, const LoRAOptions& options) {
    (void)detail::find_slot("lora", module, name);
    return register_parametrization(module, name, LoRA(module.parameter_value(name), options));
}

Tensor WeightNorm::norm(const Tensor& v) const {
    if (!dim_) return sqrt(sum(square(v)));
    const int kept_axis = normalize_axis("WeightNorm", *dim_, v.rank());
    Dims axes;
    for (int axis = 0; axis < v.rank(); ++axis)
        if (axis != kept_axis) axes.push_back(axis);
    return axes.empty() ? abs(v) : sqrt(sum(square(v), axes, true));
}

// f16 and bf16 are rounded once, at the end.
Tensor WeightNorm::forward(Tensor g, Tensor v) {
    const DType type = v.dtype(), compute = compute_type(type);
    const Tensor in = v.to(compute);
    return (in * (g.to(compute) / norm(in))).to(type);
}

std::pair<Tensor, Tensor> WeightNorm::right_inverse(const Tensor& weight) const {
    return {norm(weight.to(compute_type(weight.dtype()))).to(weight.dtype()), weight};
}

WeightNorm& weight_norm(Module& module, std::string_view name, std::optional<std::int64_t> dim) {
    return register_parametrization(module, name, WeightNorm(dim));
}

}  // namespace nn

Tensor Parameter::value() const {
    if (!slot_) return {};
    return slot_->parametrized == nullptr ? slot_->tensor : slot_->parametrized->value();
}

}  // namespace declivity
