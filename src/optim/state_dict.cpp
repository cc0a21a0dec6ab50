// State dicts of optimizers: in their own format, in those of earlier versions, and in that of torch.optim.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

#include "optimizer_state.hpp"
#include "tensor/load_state.hpp"

namespace declivity::optim {
namespace {

/// Number of f32 parts that sum up to an f64, for devices without f64.
constexpr int kRateParts = 3;

std::string rate_name(std::size_t group) { return fmt::format("groups.{}.learning_rate", group); }
std::string initial_rate_name(std::size_t group) { return fmt::format("groups.{}.initial_learning_rate", group); }
/// Earlier versions: the learning rate, rounded to the compute type, and one step count.
std::string progress_name(std::size_t group) { return fmt::format("groups.{}.progress", group); }
std::string step_name(const std::string& parameter) { return fmt::format("state.{}.step", parameter); }

Tensor split_into_f32(double value, const Device& device) {
    std::vector<float> parts;
    for (int i = 0; i < kRateParts; ++i) {
        parts.push_back(static_cast<float>(value));
        value -= static_cast<double>(parts.back());
    }
    return Tensor::from(parts, {kRateParts}, device);
}

double sum_of(const Tensor& tensor) {
    double value = 0;
    const auto add = [&](const auto& values) {
        // Summed from small to large.
        for (auto value_it = values.rbegin(); value_it != values.rend(); ++value_it)
            value += static_cast<double>(*value_it);
    };
    if (tensor.dtype() == DType::f64) add(tensor.to_vector<double>());
    else add(tensor.to(DType::f32).to_vector<float>());
    return value;
}

void require_rate(const std::string& name, double rate) {
    if (!(rate >= 0) || !std::isfinite(rate))
        throw ValueError(
            fmt::format("load_state_dict: expected a finite rate of at least 0 as '{}', got {}", name, rate));
}

/// @throws ValueError, ShapeError unless it is a rate as written by state_dict()
double rate_from_parts(const std::string& name, const Tensor& tensor) {
    if (!tensor.defined())
        throw ValueError(fmt::format("load_state_dict: expected a tensor for '{}', got an undefined one", name));
    const bool is_split = tensor.shape() == Shape{kRateParts} && tensor.dtype() == DType::f32;
    const bool is_single = tensor.numel() == 1 && tensor.rank() <= 1 && is_floating(tensor.dtype());
    if (!is_split && !is_single)
        throw ShapeError(fmt::format("load_state_dict: expected '{}' of f32 and shape [{}], or one number, got {} {}",
                                     name, kRateParts, name_of(tensor.dtype()), tensor.shape().str()));
    const double rate = sum_of(tensor);
    require_rate(name, rate);
    return rate;
}

void require_step(const std::string& name, double step) {
    if (!(step >= 0) || step != std::floor(step) || std::isinf(step))
        throw ValueError(fmt::format("load_state_dict: expected a non-negative integer number of steps as '{}', got {}",
                                     name, step));
}

/// A step count of any real type, with or without an axis, as a scalar of `dtype`.
/// @throws ValueError, ShapeError, TypeError
Tensor step_from(const std::string& name, const Tensor& tensor, DType dtype) {
    if (!tensor.defined())
        throw ValueError(fmt::format("load_state_dict: expected a tensor for '{}', got an undefined one", name));
    if (tensor.numel() != 1 || tensor.rank() > 1)
        throw ShapeError(
            fmt::format("load_state_dict: expected one number for '{}', got shape {}", name, tensor.shape().str()));
    if (!is_floating(tensor.dtype()) && !is_integer(tensor.dtype()))
        throw TypeError(
            fmt::format("load_state_dict: expected a number for '{}', got {}", name, name_of(tensor.dtype())));
    require_step(name, sum_of(reshape(tensor, {1})));
    return reshape(tensor, {}).to(dtype);
}

using TensorsByName = std::unordered_map<std::string, Tensor>;

/// Removes an entry from a state and returns it; undefined if there is none.
std::optional<Tensor> extract(TensorsByName& from, const std::string& name) {
    const auto found = from.find(name);
    if (found == from.end()) return std::nullopt;
    Tensor tensor = std::move(found->second);
    from.erase(found);
    return tensor;
}

/// The tensors of a state by name. @throws ValueError for a duplicate name
TensorsByName by_name(const StateDict& state) {
    TensorsByName tensors;
    for (const NamedTensor& item : state)
        if (!tensors.emplace(item.name, item.tensor).second)
            throw ValueError(fmt::format("load_state_dict: expected each name once, got '{}' again", item.name));
    return tensors;
}

}  // namespace

StateDict Optimizer::state_dict() const {
    StateDict out;
    for (std::size_t index = 0; index < checked_state("state_dict").groups.size(); ++index) {
        const Group& group = state_->groups[index];
        out.push_back({rate_name(index), split_into_f32(group.rate, group.scalars.device())});
        for (std::size_t i = 0; i < group.parameters.size(); ++i) {
            const std::string& name = group.names[i];
            const ops::View step = ops::sliced(group.steps(), 0, static_cast<std::int64_t>(i), 1);
            out.push_back({step_name(name), Tensor(ops::reshaped(step, {}))});
            for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
                out.push_back({fmt::format("state.{}.{}", name, group.slot_names[slot].name), group.slots[slot][i]});
            if (!group.masters.empty()) out.push_back({fmt::format("state.{}.master", name), group.masters[i]});
        }
    }
    for (std::size_t index = 0; index < state_->groups.size(); ++index) {
        const Group& group = state_->groups[index];
        out.push_back({initial_rate_name(index), split_into_f32(group.initial_rate, group.scalars.device())});
    }
    return out;
}

void Optimizer::load_state_dict(const StateDict& state) {
    const NoGrad no_grad;
    const std::vector<Group>& groups = checked_state("load_state_dict").groups;
    TensorsByName remaining = by_name(state);
    StateDict complete;  // in the names of state_dict()
    std::vector<std::pair<double, double>> rates;
    for (std::size_t index = 0; index < groups.size(); ++index) {
        const Group& group = groups[index];
        const Device& device = group.scalars.device();
        const DType dtype = group.scalars.dtype();
        std::optional<Tensor> rate = extract(remaining, rate_name(index)),
                              initial = extract(remaining, initial_rate_name(index));
        const std::optional<Tensor> progress = extract(remaining, progress_name(index));
        rates.emplace_back(group.rate, group.initial_rate);
        auto& [rate_now, initial_now] = rates.back();
        if (rate) rate_now = rate_from_parts(rate_name(index), *rate);
        if (initial) initial_now = rate_from_parts(initial_rate_name(index), *initial);
        std::optional<Tensor> steps;  // of a state of an earlier version
        if (progress) {
            if (!progress->defined() || !(progress->shape() == Shape{2}) || progress->dtype() != dtype)
                throw ShapeError(fmt::format(
                    "load_state_dict: expected '{}' of {} and shape [2], got {}", progress_name(index), name_of(dtype),
                    progress->defined() ? fmt::format("{} {}", name_of(progress->dtype()), progress->shape().str())
                                        : "an undefined tensor"));
            const double stored_rate = sum_of(slice(*progress, 0, 0, 1));
            require_rate(progress_name(index), stored_rate);
            // A rate that was written only to the progress tensor takes precedence.
            const bool matches = dtype == DType::f64 ? rate_now == stored_rate
                                                     : static_cast<double>(static_cast<float>(rate_now)) == stored_rate;
            if (!rate || !matches) rate_now = stored_rate;
            steps = step_from(progress_name(index), slice(*progress, 0, 1, 2), dtype);
        }
        if (rate || progress) complete.push_back({rate_name(index), split_into_f32(rate_now, device)});
        complete.push_back({initial_rate_name(index), split_into_f32(initial_now, device)});
        for (const std::string& parameter : group.names) {
            const std::string name = step_name(parameter);
            if (const std::optional<Tensor> step = extract(remaining, name))
                complete.push_back({name, step_from(name, *step, dtype)});
            else if (steps) complete.push_back({name, *steps});
        }
    }
    for (const NamedTensor& item : state)
        if (const auto found = remaining.find(item.name); found != remaining.end()) complete.push_back(item);
    detail::load_state(state_->name, state_dict(), complete);
    for (std::size_t index = 0; index < groups.size(); ++index) {
        state_->groups[index].initial_rate = rates[index].second;
        set_learning_rate(rates[index].first, index);
    }
}

namespace {

/// Names of each parameter's state in torch.optim.
struct TorchNames {
    std::string_view optimizer;
    std::vector<std::pair<std::string_view, std::string_view>> slots;  // own name, torch.optim's name
    bool counts_steps = true;
};

const TorchNames& torch_names(std::string_view optimizer) {
    static const std::vector<TorchNames> all{
        {"SGD", {{"m", "momentum_buffer"}}, false},
        {"Adam", {{"m", "exp_avg"}, {"v", "exp_avg_sq"}, {"v_max", "max_exp_avg_sq"}}},
        {"AdamW", {{"m", "exp_avg"}, {"v", "exp_avg_sq"}, {"v_max", "max_exp_avg_sq"}}},
        {"RAdam", {{"m", "exp_avg"}, {"v", "exp_avg_sq"}}},
        {"RMSprop", {{"v", "square_avg"}, {"a", "grad_avg"}, {"m", "momentum_buffer"}}},
        {"Adagrad", {{"s", "sum"}}},
        {"Adadelta", {{"v", "square_avg"}, {"d", "acc_delta"}}},
    };
    static const TorchNames unknown;
    const auto found = std::ranges::find(all, optimizer, &TorchNames::optimizer);
    return found == all.end() ? unknown : *found;
}

std::string torch_slot(const TorchNames& names, std::string_view slot) {
    const auto found = std::ranges::find(names.slots, slot, &std::pair<std::string_view, std::string_view>::first);
    return std::string(found == names.slots.end() ? slot : found->second);
}

std::string torch_rate_name(std::size_t group) { return fmt::format("param_groups.{}.lr", group); }
std::string torch_initial_rate_name(std::size_t group) { return fmt::format("param_groups.{}.initial_lr", group); }

}  // namespace

StateDict Optimizer::torch_state_dict() const {
    const std::vector<Group>& groups = checked_state("torch_state_dict").groups;
    const TorchNames& names = torch_names(state_->name);
    StateDict out;
    std::size_t parameter_index = 0;
    for (std::size_t index = 0; index < groups.size(); ++index) {
        const Group& group = groups[index];
        out.push_back({torch_rate_name(index), split_into_f32(group.rate, group.scalars.device())});
        out.push_back({torch_initial_rate_name(index), split_into_f32(group.initial_rate, group.scalars.device())});
        const std::vector<float> steps = Tensor(group.steps()).to(DType::f32).to_vector<float>();
        for (std::size_t i = 0; i < group.parameters.size(); ++i, ++parameter_index) {
            if (steps[i] == 0) continue;
            if (names.counts_steps)
                out.push_back({fmt::format("state.{}.step", parameter_index),
                               full({}, steps[i], {.device = group.scalars.device()})});
            for (std::size_t slot = 0; slot < group.slots.size(); ++slot)
                out.push_back(
                    {fmt::format("state.{}.{}", parameter_index, torch_slot(names, group.slot_names[slot].name)),
                     group.slots[slot][i]});
        }
    }
    return out;
}

void Optimizer::load_torch_state_dict(const StateDict& state) {
    const NoGrad no_grad;
    const std::vector<Group>& groups = checked_state("load_torch_state_dict").groups;
    const TorchNames& names = torch_names(state_->name);
    TensorsByName remaining = by_name(state);
    StateDict converted;
    std::size_t parameter_index = 0;
    for (std::size_t index = 0; index < groups.size(); ++index) {
        const Group& group = groups[index];
        const Device& device = group.scalars.device();
        const DType dtype = group.scalars.dtype();
        const auto rate = [&](const std::string& torch_name, const std::string& name, double value) {
            if (const std::optional<Tensor> tensor = extract(remaining, torch_name)) {
                if (!tensor->defined() || !is_floating(tensor->dtype()))
                    throw TypeError(fmt::format("load_torch_state_dict: expected '{}' of a floating type, got {}",
                                                torch_name,
                                                tensor->defined() ? name_of(tensor->dtype()) : "an undefined tensor"));
                value = sum_of(*tensor);
            }
            converted.push_back({name, split_into_f32(value, device)});
        };
        rate(torch_rate_name(index), rate_name(index), group.rate);
        rate(torch_initial_rate_name(index), initial_rate_name(index), group.initial_rate);
        for (std::size_t i = 0; i < group.parameters.size(); ++i, ++parameter_index) {
            const std::string index_prefix = fmt::format("state.{}.", parameter_index),
                              name_prefix = fmt::format("state.{}.", group.names[i]);
            const auto entry = [&](const std::string& key) {
                std::optional<Tensor> tensor = extract(remaining, index_prefix + key);
                return tensor ? tensor : extract(remaining, name_prefix + key);
            };
            std::optional<Tensor> step = entry("step");
            bool has_state = step.has_value();
            std::vector<std::optional<Tensor>> slots;
            for (const Slot& slot : group.slot_names) {
                slots.push_back(entry(torch_slot(names, slot.name)));
                has_state = has_state || slots.back();
            }
            // PyTorch creates a parameter's state in its first step.
            if (!step && (!has_state || !names.counts_steps))
                step = full({}, has_state ? 1 : 0, {.dtype = dtype, .device = device});
            if (step) converted.push_back({step_name(group.names[i]), *step});
            for (std::size_t slot = 0; slot < slots.size(); ++slot) {
                Tensor slot_tensor = slots[slot].value_or(Tensor());
                if (!has_state)
                    slot_tensor =
                        full(group.shapes[i], group.slot_names[slot].initial, {.dtype = dtype, .device = device});
                if (!slot_tensor.defined()) continue;
                if (is_floating(slot_tensor.dtype())) slot_tensor = slot_tensor.to(dtype);
                converted.push_back({name_prefix + group.slot_names[slot].name, slot_tensor});
            }
            if (!group.masters.empty())
                converted.push_back({name_prefix + "master", group.parameters[i].detach().to(dtype)});
        }
    }
    for (const NamedTensor& tensor : state)
        if (remaining.contains(tensor.name)) converted.push_back(tensor);  // refused by its name
    load_state_dict(converted);
}

}  // namespace declivity::optim
