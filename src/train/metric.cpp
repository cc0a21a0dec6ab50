#include <declivity/train/metric.hpp>

#include <algorithm>

#include <declivity/autograd/autograd.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::train {

Metric::States::States(std::vector<std::string> names, std::vector<io::HostArray> arrays)
    : names_(std::move(names)), arrays_(std::move(arrays)) {}

const io::HostArray& Metric::States::array(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
        throw ValueError(fmt::format("Metric: expected the name of a state, one of {}, got '{}'", names_, name));
    return arrays_[static_cast<std::size_t>(found - names_.begin())];
}

double Metric::States::number(std::string_view name) const {
    const io::HostArray& state_array = array(name);
    if (state_array.shape.numel() != 1)
        throw ShapeError(fmt::format("Metric: expected a state of one element, got '{}' of shape {}", name,
                                     state_array.shape.str()));
    return state_array.to_doubles()[0];
}

std::vector<double> Metric::States::numbers(std::string_view name) const { return array(name).to_doubles(); }

Metric::Metric(const std::optional<Device>& device) : device_(device ? *device : default_device()) {}
Metric::~Metric() = default;

const std::type_info& Metric::capture_safe() const { return replayable(); }
const std::type_info& Metric::replayable() const { return typeid(void); }

Tensor Metric::state(std::string_view name, const Shape& shape, DType dtype) {
    const auto has_name = [name](const auto& item) { return item.first == name; };
    if (name.empty() || name.find('.') != std::string_view::npos || std::ranges::any_of(states_, has_name))
        throw ValueError(
            fmt::format("Metric: expected a name without a dot, and each once, for a state, got '{}'", name));
    states_.emplace_back(name, zeros(shape, {dtype, device_}));
    return states_.back().second;
}

void Metric::update(const Tensor& output, const Tensor& target) {
    const NoGrad no_grad;
    const Scope scope("metric");
    const Tensor detached = output.detach();
    do_update(detached.to(compute_type(detached.dtype())), target.detach());
}

double Metric::compute(States states) {
    const double result = value(states);
    computed_ = std::move(states);
    has_computed_ = true;
    return result;
}

double Metric::compute() {
    std::vector<std::string> names;
    std::vector<io::HostArray> arrays;
    for (const auto& [name, tensor] : states_) {
        names.push_back(name);
        arrays.push_back(io::to_host(tensor));
    }
    return compute(States(std::move(names), std::move(arrays)));
}

const Metric::States& Metric::last_states(std::string_view function) const {
    if (!has_computed_) throw ValueError(fmt::format("{}: expected a compute() before, got none", function));
    return computed_;
}

void Metric::reset() {
    const NoGrad no_grad;
    for (auto& [name, tensor] : states_) tensor.zero_();
}

void Metric::to(const Device& device) {
    device_ = device;
    for (auto& [name, tensor] : states_)
        if (!(tensor.device() == device)) tensor.assign(tensor.to(device));
}

}  // namespace declivity::train
