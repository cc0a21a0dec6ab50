#include <declivity/nn/lora.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convert.hpp"

namespace declivity::nn {
namespace {

/// Calls visit(name, layer) for all linear layers below a module, except those of adapters.
void for_each_linear(const Module& model, const std::string& prefix,
                     const std::function<void(const std::string&, Linear&)>& visit) {
    for (const auto& [child_name, child] : model.children()) {
        const std::string name = prefix.empty() ? child_name : prefix + "." + child_name;
        if (dynamic_cast<Lora*>(child) != nullptr) continue;
        if (auto* const linear = dynamic_cast<Linear*>(child)) visit(name, *linear);
        for_each_linear(*child, name, visit);
    }
}

/// Target module that a name matches, or null.
const std::string* target_of(const std::string& name, const std::vector<std::string>& targets) {
    for (const std::string& target : targets)
        if (name == target || name.ends_with("." + target)) return &target;
    return nullptr;
}

/// Last components of their names, each once, for a message.
std::string names_of_linear_layers(const Module& model) {
    std::vector<std::string> names;
    for_each_linear(model, "", [&](const std::string& name, Linear&) {
        const std::string last = name.substr(name.rfind('.') + 1);
        if (std::ranges::find(names, last) == names.end()) names.push_back(last);
    });
    if (names.empty()) return "the model has none";
    constexpr std::size_t kShown = 12;
    if (names.size() > kShown) names.resize(kShown), names.emplace_back("...");
    return fmt::format("the model has {}", fmt::join(names, ", "));
}

void check(const char* name, const LoraOptions& options) {
    if (options.r < 1 || !std::isfinite(options.lora_alpha))
        throw ValueError(fmt::format("{}: expected r of at least 1 and a finite lora_alpha, got {} and {}", name,
                                     options.r, options.lora_alpha));
    if (!(options.lora_dropout >= 0 && options.lora_dropout <= 1))
        throw ValueError(fmt::format("{}: expected lora_dropout in [0, 1], got {}", name, options.lora_dropout));
    for (const DType dtype : {options.dtype, options.base_dtype.value_or(DType::f32)})
        if (!is_floating(dtype))
            throw TypeError(fmt::format("{}: expected f32, f64, f16 or bf16, got {}", name, name_of(dtype)));
}

double scale_of(const LoraOptions& options) {
    const auto rank = static_cast<double>(options.r);
    return options.lora_alpha / (options.use_rslora ? std::sqrt(rank) : rank);
}

}  // namespace

Lora::Lora(std::int64_t in_features, std::int64_t out_features, const LoraOptions& options, const Device& device)
    : options_(options), scale_(scale_of(options)) {
    check("Lora", options);
    const TensorOptions tensor{options.dtype, device};
    const double bound = 1 / std::sqrt(static_cast<double>(in_features));
    a_ = parameter("A", uniform({options.r, in_features}, -bound, bound, tensor));
    b_ = parameter("B", zeros({out_features, options.r}, tensor));
}

Tensor Lora::delta() const { return matmul(b_, a_) * scale_; }

Tensor Lora::forward(Tensor x) {
    // f32 inputs are multiplied by weights of any type in f32; all others in the adapter's type.
    const DType dtype = a().dtype();
    if (x.dtype() != dtype && !(x.dtype() == DType::f32 && is_16bit_float(dtype))) x = x.to(dtype);
    if (options_.lora_dropout > 0 && training()) x = dropout(x, options_.lora_dropout);
    return linear(linear(x, a_), b_) * scale_;
}

std::int64_t Lora::multiply_adds(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    return options_.r * (inputs.at(0).numel() + outputs.at(0).numel());
}

void Lora::set_options(const LoraOptions& options) {
    check("Lora::set_options", options);
    if (options.r != options_.r)
        throw ValueError(fmt::format("Lora::set_options: expected r of {}, got {}", options_.r, options.r));
    if (merged_) throw ValueError("Lora::set_options: expected an adapter that is not merged");
    options_.lora_alpha = options.lora_alpha;
    options_.use_rslora = options.use_rslora;
    options_.lora_dropout = options.lora_dropout;
    options_.target_modules = options.target_modules;
    scale_ = scale_of(options_);
    note_change();
}

std::vector<AdaptedLinear> lora_targets(const Module& model, const LoraOptions& options) {
    check("add_lora", options);
    std::vector<AdaptedLinear> found;
    std::set<std::string> used;
    for_each_linear(model, "", [&](const std::string& name, Linear& layer) {
        const std::string* target = target_of(name, options.target_modules);
        if (target != nullptr) used.insert(*target);
        if (target != nullptr || options.target_modules.empty()) found.push_back({name, &layer});
    });
    for (const std::string& module_name : options.target_modules)
        if (!used.contains(module_name))
            throw ValueError(fmt::format("add_lora: expected target_modules that name linear layers ({}), got '{}'",
                                         names_of_linear_layers(model), module_name));
    if (found.empty()) throw ValueError("add_lora: expected a model with linear layers");
    for (const auto& [name, layer] : found)
        if (layer->lora() != nullptr)
            throw ValueError(fmt::format("add_lora: expected layers without adapters, '{}' has one", name));
    return found;
}

std::vector<std::string> add_lora(Module& model, const LoraOptions& options) {
    const std::vector<AdaptedLinear> found = lora_targets(model, options);
    // Everything that allocates memory comes first: a call that fails leaves the model unchanged.
    std::vector<Lora> adapters;
    adapters.reserve(found.size());
    for (const auto& [name, layer] : found) {
        const Tensor weight = layer->weight();
        adapters.emplace_back(weight.size(1), weight.size(0), options, weight.device());
        for (const Tensor& parameter : adapters.back().parameters()) (void)parameter.view();
    }
    if (options.base_dtype) {
        StateDict weights;
        for_each_linear(model, "", [&](const std::string&, Linear& layer) {
            for (const NamedTensor& item : layer.state_dict())
                if (is_floating(item.tensor.dtype())) weights.push_back(item);
        });
        detail::convert(weights, [&](const Tensor& tensor) { return tensor.to(*options.base_dtype); });
    }
    for (const Tensor& parameter : model.parameters()) Tensor(parameter).set_requires_grad(false);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < found.size(); ++i) {
        found[i].layer->add_lora(std::move(adapters[i]));
        names.push_back(found[i].name);
    }
    return names;
}

std::vector<AdaptedLinear> adapted_layers(const Module& model) {
    std::vector<AdaptedLinear> layers;
    for_each_linear(model, "", [&](const std::string& name, Linear& layer) {
        if (layer.lora() != nullptr) layers.push_back({name, &layer});
    });
    return layers;
}

std::vector<Tensor> lora_parameters(const Module& model) {
    std::vector<Tensor> parameters;
    for (const AdaptedLinear& adapted_layer : adapted_layers(model)) {
        parameters.push_back(adapted_layer.layer->lora()->a());
        parameters.push_back(adapted_layer.layer->lora()->b());
    }
    return parameters;
}

void merge_lora(Module& model) {
    for (const AdaptedLinear& adapted_layer : adapted_layers(model)) adapted_layer.layer->merge_lora();
}

void unmerge_lora(Module& model) {
    for (const AdaptedLinear& adapted_layer : adapted_layers(model)) adapted_layer.layer->unmerge_lora();
}

}  // namespace declivity::nn
