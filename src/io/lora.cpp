#include <declivity/io/lora.hpp>

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/io/atomic_file.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "json_file.hpp"

namespace declivity::io {
namespace {

constexpr const char *kPrefix = "base_model.model.", *kWeights = "adapter_model.safetensors",
                     *kConfig = "adapter_config.json";

/// Tensors of all adapters under PEFT's names.
std::map<std::string, Tensor> tensors_of(const nn::Module& model) {
    std::map<std::string, Tensor> tensors;
    for (const nn::AdaptedLinear& adapted : nn::adapted_layers(model)) {
        tensors.emplace(fmt::format("{}{}.lora_A.weight", kPrefix, adapted.name), adapted.layer->lora()->a());
        tensors.emplace(fmt::format("{}{}.lora_B.weight", kPrefix, adapted.name), adapted.layer->lora()->b());
    }
    return tensors;
}

/// A member of the file, checked by `is_valid`.
template <class T, class Predicate>
void read(const JsonFile& file, const char* key, const char* expected, T& value, Predicate is_valid) {
    const auto found = file.root().find(key);
    if (found == file.root().end() || found->is_null()) return;
    if (!is_valid(*found)) file.fail(key, fmt::format("expected {} as '{}'", expected, key));
    value = found->get<T>();
}

nn::LoraOptions read_config(const std::filesystem::path& path) {
    using nlohmann::json;
    const JsonFile file(path);
    const auto is_number = [](const json& item) { return item.is_number(); };
    const auto is_bool = [](const json& element) { return element.is_boolean(); };
    nn::LoraOptions options;
    std::string type = "LORA", bias = "none";
    read(file, "peft_type", "\"LORA\"", type, [](const json& entry) { return entry.is_string() && entry == "LORA"; });
    read(file, "bias", "\"none\"", bias, [](const json& value) { return value.is_string() && value == "none"; });
    read(file, "r", "a number in 1 .. 65536", options.r, [](const json& value) {
        return value.is_number_integer() && value.get<std::int64_t>() >= 1 && value.get<std::int64_t>() <= 65536;
    });
    read(file, "lora_alpha", "a number", options.lora_alpha, is_number);
    read(file, "lora_dropout", "a probability", options.lora_dropout,
         [](const json& value) { return value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1; });
    read(file, "use_rslora", "a bool", options.use_rslora, is_bool);
    bool use_dora = false;
    read(file, "use_dora", "false", use_dora,
         [](const json& value) { return value.is_boolean() && !value.get<bool>(); });
    for (const char* key : {"rank_pattern", "alpha_pattern"})
        if (const auto found = file.root().find(key); found != file.root().end() && !found->empty())
            file.fail(key, fmt::format("expected one rank for all layers, got '{}'", key));
    if (const auto found = file.root().find("target_modules"); found != file.root().end() && found->is_string()) {
        if (*found != "all-linear") file.fail("target_modules", "expected a list of names, got a pattern");
    } else {
        read(file, "target_modules", "a list of names", options.target_modules, [](const json& item) {
            if (!item.is_array()) return false;
            for (const json& name : item)
                if (!name.is_string()) return false;
            return true;
        });
    }
    return options;
}

std::string describe(const nn::LoraOptions& options) {
    return fmt::format("(r {}, lora_alpha {}, lora_dropout {}, use_rslora {})", options.r, options.lora_alpha,
                       options.lora_dropout, options.use_rslora);
}

}  // namespace

void save_lora(const nn::Module& model, const std::filesystem::path& folder) {
    const FunctionScope function("save_lora");
    const std::vector<nn::AdaptedLinear> layers = nn::adapted_layers(model);
    if (layers.empty()) throw ValueError("save_lora: expected a model with adapters, see nn::add_lora()");
    const nn::LoraOptions& options = layers[0].layer->lora()->options();
    for (const nn::AdaptedLinear& adapted : layers) {
        const nn::LoraOptions& other = adapted.layer->lora()->options();
        if (other.r != options.r || other.lora_alpha != options.lora_alpha ||
            other.lora_dropout != options.lora_dropout || other.use_rslora != options.use_rslora)
            throw ValueError(fmt::format(
                "save_lora: expected adapters with one r, lora_alpha, lora_dropout and use_rslora, got {} of '{}' and "
                "{} of '{}'",
                describe(options), layers[0].name, describe(other), adapted.name));
    }
    std::error_code ignored;  // errors are reported when writing
    std::filesystem::create_directories(folder, ignored);
    StateDict state;
    for (const auto& [name, tensor] : tensors_of(model)) state.push_back({name, tensor});
    save(folder / kWeights, state, {{"format", "pt"}});
    std::vector<std::string> targets;
    for (const nn::AdaptedLinear& adapted : layers) targets.push_back(adapted.name);
    const nlohmann::json config{{"peft_type", "LORA"},
                                {"bias", "none"},
                                {"r", options.r},
                                {"lora_alpha", options.lora_alpha},
                                {"lora_dropout", options.lora_dropout},
                                {"use_rslora", options.use_rslora},
                                {"target_modules", targets},
                                {"base_model_name_or_path", nullptr},
                                {"fan_in_fan_out", false},
                                {"inference_mode", true},
                                {"task_type", nullptr}};
    const std::string text = detail::dump_json("save_lora", config, 2) + "\n";
    write_file(folder / kConfig, std::as_bytes(std::span(text)));
}

namespace {

/// Tensors that a file must have for an adapter.
struct Adapter {
    Shape a, b;
    Device device;
};

/// Adapters that the model has, or that are created from the options of a file, by the names of their layers.
std::map<std::string, Adapter> expected_adapters(const nn::Module& model, const nn::LoraOptions& options,
                                                 const std::string& config) {
    std::vector<nn::AdaptedLinear> layers = nn::adapted_layers(model);
    for (const nn::AdaptedLinear& adapted : layers) {
        const nn::Lora& adapter = *adapted.layer->lora();
        if (adapter.merged())
            throw ValueError(fmt::format("load_lora: expected unmerged adapters, that of '{}' is merged (file '{}')",
                                         adapted.name, config));
        if (adapter.options().r != options.r)
            throw ShapeError(fmt::format("load_lora: expected r of {}, that of the adapter of '{}', got {} in '{}'",
                                         adapter.options().r, adapted.name, options.r, config));
    }
    if (layers.empty()) {
        try {
            const ResumedScope no_scope{ScopePath()};  // the enclosing message names the function
            layers = nn::lora_targets(model, options);
        } catch (const ValueError& error) {
            throw ValueError(fmt::format("load_lora: '{}' does not fit the model: {}", config, error.what()));
        }
    }
    std::map<std::string, Adapter> adapters;
    for (const nn::AdaptedLinear& adapted : layers) {
        const Tensor weight = adapted.layer->weight();
        adapters.emplace(adapted.name,
                         Adapter{{options.r, weight.size(1)}, {weight.size(0), options.r}, weight.device()});
    }
    return adapters;
}

}  // namespace

void load_lora(nn::Module& model, const std::filesystem::path& folder) {
    const FunctionScope function("load_lora");
    const nn::LoraOptions options = read_config(folder / kConfig);
    const std::string config = (folder / kConfig).string(), weights = (folder / kWeights).string();
    const Safetensors file = read_safetensors(folder / kWeights);
    std::map<std::string, Tensor> loaded;
    std::set<std::string> missing;
    std::map<std::string, std::pair<Shape, Device>> expected;
    for (const auto& [name, adapter] : expected_adapters(model, options, config)) {
        const std::string a = fmt::format("{}{}.lora_A.weight", kPrefix, name),
                          b = fmt::format("{}{}.lora_B.weight", kPrefix, name);
        expected.emplace(a, std::pair(adapter.a, adapter.device));
        expected.emplace(b, std::pair(adapter.b, adapter.device));
        missing.insert({a, b});
    }
    for (const auto& [name, array] : file.arrays) {
        const auto found = expected.find(name);
        if (found == expected.end())
            throw ValueError(
                fmt::format("load_lora: expected adapters of the model's layers, got '{}' in '{}'", name, weights));
        if (found->second.first != array.shape)
            throw ShapeError(fmt::format("load_lora: expected '{}' {}, got {} in '{}'", name, found->second.first.str(),
                                         array.shape.str(), weights));
        if (!is_floating(array.dtype))
            throw TypeError(fmt::format("load_lora: expected '{}' of a floating type, got {} in '{}'", name,
                                        name_of(array.dtype), weights));
        missing.erase(name);
    }
    if (!missing.empty())
        throw ValueError(fmt::format("load_lora: expected '{}', which '{}' does not have", *missing.begin(), weights));
    const NoGrad no_grad;
    for (const auto& [name, array] : file.arrays)
        loaded.emplace(name, to_device(array, expected.at(name).second).to(options.dtype));
    for (const auto& [name, tensor] : loaded) (void)tensor.view();
    // From here on nothing is read or compared.
    if (nn::adapted_layers(model).empty()) nn::add_lora(model, options);
    else
        for (const nn::AdaptedLinear& adapted : nn::adapted_layers(model)) adapted.layer->lora()->set_options(options);
    for (const auto& [name, tensor] : tensors_of(model)) Tensor(tensor).copy_(loaded.at(name).to(tensor.dtype()));
}

}  // namespace declivity::io
