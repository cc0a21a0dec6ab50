#include <declivity/io/lora.hpp>

#include <map>
#include <set>
#include <span>
#include <string>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <fmt/format.h>

#include "io/json_file.hpp"

namespace declivity::io {
namespace {

constexpr const char *kPrefix = "base_model.model.", *kWeights = "adapter_model.safetensors",
                     *kConfig = "adapter_config.json";

/// The tensors of all adapters by PEFT's names.
std::map<std::string, Tensor> tensors_of(const nn::Module& model) {
    std::map<std::string, Tensor> all;
    for (const nn::AdaptedLinear& one : nn::adapted_layers(model)) {
        all.emplace(fmt::format("{}{}.lora_A.weight", kPrefix, one.name), one.layer->lora()->a());
        all.emplace(fmt::format("{}{}.lora_B.weight", kPrefix, one.name), one.layer->lora()->b());
    }
    return all;
}

/// A member of the file, checked by `fits`.
template <class T, class Fits>
void read(const JsonFile& file, const char* key, const char* wants, T& to, Fits fits) {
    const auto found = file.root().find(key);
    if (found == file.root().end() || found->is_null()) return;
    if (!fits(*found)) file.fail(key, fmt::format("wants {} as '{}'", wants, key));
    to = found->get<T>();
}

nn::LoraOptions read_config(const std::filesystem::path& path) {
    using nlohmann::json;
    const JsonFile file(path);
    const auto is_number = [](const json& one) { return one.is_number(); };
    const auto is_bool = [](const json& one) { return one.is_boolean(); };
    nn::LoraOptions options;
    std::string type = "LORA", bias = "none";
    read(file, "peft_type", "\"LORA\"", type, [](const json& one) { return one.is_string() && one == "LORA"; });
    read(file, "bias", "\"none\"", bias, [](const json& one) { return one.is_string() && one == "none"; });
    read(file, "r", "a number in 1 .. 65536", options.r, [](const json& one) {
        return one.is_number_integer() && one.get<std::int64_t>() >= 1 && one.get<std::int64_t>() <= 65536;
    });
    read(file, "lora_alpha", "a number", options.lora_alpha, is_number);
    read(file, "lora_dropout", "a probability", options.lora_dropout,
         [](const json& one) { return one.is_number() && one.get<double>() >= 0 && one.get<double>() <= 1; });
    read(file, "use_rslora", "a bool", options.use_rslora, is_bool);
    bool use_dora = false;
    read(file, "use_dora", "false", use_dora, [](const json& one) { return one.is_boolean() && !one.get<bool>(); });
    for (const char* key : {"rank_pattern", "alpha_pattern"})
        if (const auto found = file.root().find(key); found != file.root().end() && !found->empty())
            file.fail(key, fmt::format("wants one rank for all layers, got '{}'", key));
    if (const auto found = file.root().find("target_modules"); found != file.root().end() && found->is_string()) {
        if (*found != "all-linear") file.fail("target_modules", "wants a list of names, got a pattern");
    } else {
        read(file, "target_modules", "a list of names", options.target_modules, [](const json& one) {
            if (!one.is_array()) return false;
            for (const json& name : one)
                if (!name.is_string()) return false;
            return true;
        });
    }
    return options;
}

}  // namespace

void save_lora(const nn::Module& model, const std::filesystem::path& folder) {
    const std::vector<nn::AdaptedLinear> layers = nn::adapted_layers(model);
    if (layers.empty()) throw ValueError("save_lora: wants a model with adapters, see nn::add_lora()");
    std::error_code ignored;  // what is wrong, writing says
    std::filesystem::create_directories(folder, ignored);
    StateDict state;
    for (const auto& [name, tensor] : tensors_of(model)) state.push_back({name, tensor});
    save(folder / kWeights, state, {{"format", "pt"}});
    std::vector<std::string> targets;
    for (const nn::AdaptedLinear& one : layers) targets.push_back(one.name);
    const nn::LoraOptions& options = layers[0].layer->lora()->options();
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

void load_lora(nn::Module& model, const std::filesystem::path& folder) {
    const nn::LoraOptions options = read_config(folder / kConfig);
    const StateDict state = load(folder / kWeights);
    if (nn::adapted_layers(model).empty()) nn::add_lora(model, options);
    const std::map<std::string, Tensor> own = tensors_of(model);
    std::set<std::string> missing;
    for (const auto& [name, tensor] : own) missing.insert(name);
    for (const auto& [name, tensor] : state) {
        const auto found = own.find(name);
        if (found == own.end())
            throw ValueError(fmt::format("load_lora: wants adapters of the model's layers, got '{}'", name));
        if (found->second.shape() != tensor.shape())
            throw ShapeError(fmt::format("load_lora: wants '{}' {}, got {}", name, found->second.shape().str(),
                                         tensor.shape().str()));
        missing.erase(name);
    }
    if (!missing.empty())
        throw ValueError(
            fmt::format("load_lora: wants '{}', which '{}' has not", *missing.begin(), (folder / kWeights).string()));
    const NoGrad no_grad;
    for (const auto& [name, tensor] : state) Tensor(own.at(name)).copy_(tensor.to(own.at(name).dtype()));
}

}  // namespace declivity::io
