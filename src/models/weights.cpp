#include "weights.hpp"
#include "tensor/access.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/safetensors_reader.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/lora.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::models {
namespace {

/// Legacy names of normalisation parameters in files of models converted from TensorFlow.
std::string legacy_name(const std::string& name) {
    for (const auto& [current, legacy] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, std::pair{"LayerNorm.bias", "LayerNorm.beta"}})
        if (name.ends_with(current)) return name.substr(0, name.size() - std::string_view(current).size()) + legacy;
    return name;
}

std::optional<std::string> name_in(const io::SafetensorsReader& reader, const std::string& name,
                                   std::string_view prefix) {
    std::vector<std::string> candidates{name, std::string(prefix) + name};
    if (name.starts_with(prefix)) candidates[1] = name.substr(prefix.size());
    for (const std::string& candidate : candidates)
        for (const std::string& spelling : {candidate, legacy_name(candidate)})
            if (reader.arrays().contains(spelling)) return spelling;
    return std::nullopt;
}

Tensor transposed(const Tensor& x) { return x.rank() == 2 ? transpose(x) : x; }

const void* state_key(const Tensor& tensor) { return state_of(tensor).get(); }

/// The product of claimed sizes, which may overflow an integer.
double elements_of(const Shape& shape) {
    double elements = 1;
    for (const std::int64_t size : shape) elements *= static_cast<double>(size);
    return elements;
}

Shape in_file_shape(const FileLayout& layout, const std::string& name, Shape shape) {
    if (layout.is_transposed(name) && shape.rank() == 2) std::swap(shape[0], shape[1]);
    return shape;
}

void require_shape(const char* function, const io::SafetensorsReader& reader, const std::string& name,
                   const Shape& expected, const char* why) {
    const io::SafetensorsReader::Array& array = reader.arrays().at(name);
    if (array.shape != expected)
        throw ShapeError(fmt::format("{}: expected '{}' {}{}, got {} in '{}'", function, name, expected.str(), why,
                                     array.shape.str(), array.file.string()));
}

/// State dict of a module without its adapters, which are saved in separate files.
StateDict without_adapters(const nn::Module& module) {
    std::set<const void*> adapters;
    for (const nn::AdaptedLinear& adapted : nn::adapted_layers(module))
        for (const NamedTensor& tensor : adapted.layer->lora()->state_dict()) adapters.insert(state_key(tensor.tensor));
    StateDict state = module.state_dict();
    std::erase_if(state, [&](const NamedTensor& item) { return adapters.contains(state_key(item.tensor)); });
    return state;
}

}  // namespace

void check_files(const char* function, const std::filesystem::path& folder, const FileLayout& layout, bool strict,
                 const ParameterList& parameters) {
    const io::SafetensorsReader reader(folder);
    constexpr std::size_t kMaxListed = 8;                        // missing parameters listed in an error
    constexpr std::size_t kMaxMissing = 100'000;                 // parameters that a model to be trained may lack
    constexpr double kMaxMissingElements = 256.0 * 1024 * 1024;  // elements that it may lack beyond those in the files
    std::vector<std::string> missing;
    double missing_elements = 0, file_elements = 0;
    for (const auto& [name, array] : reader.arrays()) file_elements += elements_of(array.shape);
    const auto refuse_missing = [&](const char* suffix) {
        throw ValueError(fmt::format("{}: expected {}{} in the files in '{}', as config.json says", function,
                                     fmt::join(std::span(missing).first(std::min(kMaxListed, missing.size())), ", "),
                                     suffix, folder.string()));
    };
    parameters([&](std::initializer_list<std::string> names, const Shape& shape) {
        bool found = false;
        for (const std::string& name : names) {
            const auto in_file = name_in(reader, name, layout.prefix);
            if (!in_file) continue;
            found = true;
            require_shape(function, reader, *in_file, in_file_shape(layout, name, shape), ", as config.json says");
        }
        if (found) return;
        missing.push_back(*names.begin());
        missing_elements += elements_of(shape);
        if (strict && missing.size() > kMaxListed) refuse_missing(" and more");
        if (missing.size() > kMaxMissing || missing_elements > file_elements + kMaxMissingElements)
            refuse_missing(" and more");
    });
    if (strict && !missing.empty()) refuse_missing("");
}

LoadedState load_weights(const char* function, nn::Module& module, const std::filesystem::path& path,
                         const FileLayout& layout, bool strict, Reading reading) {
    const io::SafetensorsReader reader(path);
    struct Match {
        std::string name, in_file;
        Tensor to, from = {};
    };
    std::vector<Match> matches;
    std::vector<const void*> filled;
    LoadedState result;
    std::set<std::string> used;
    const StateDict state = without_adapters(module);
    for (const auto& [name, tensor] : state)
        if (const auto in_file = name_in(reader, name, layout.prefix)) {
            matches.push_back({name, *in_file, tensor});
            filled.push_back(state_key(tensor));
            used.insert(*in_file);
        }
    for (const auto& [name, tensor] : state)
        // A tied parameter has its values under its other name.
        if (std::ranges::find(filled, state_key(tensor)) == filled.end()) result.missing.push_back(name);
    for (const auto& [name, array] : reader.arrays())
        if (!used.contains(name)) result.unexpected.push_back(name);
    if (strict && !result.missing.empty())
        throw ValueError(fmt::format("{}: expected {} in the files in '{}'", function, fmt::join(result.missing, ", "),
                                     path.string()));
    for (const Match& match : matches)
        require_shape(function, reader, match.in_file, in_file_shape(layout, match.name, match.to.shape()), "");
    const NoGrad no_grad;
    const auto read = [&](const Match& match) {
        Tensor from = io::to_device(reader.read(match.in_file), match.to.device());
        if (layout.is_transposed(match.name)) from = transposed(from);
        from = from.to(match.to.dtype());
        (void)from.view();  // releases the array as it was read
        return from;
    };
    if (reading == Reading::all_or_nothing)
        for (Match& match : matches) match.from = read(match);
    for (Match& match : matches) {
        match.to.copy_(match.from.defined() ? match.from : read(match));
        // At most one array is pending, so that memory is allocated for only one.
        (void)match.to.view();
        match.from = {};
    }
    return result;
}

void save_weights(const nn::Module& module, const std::filesystem::path& folder, const FileLayout& layout,
                  std::uint64_t max_shard_size) {
    for (const nn::AdaptedLinear& adapted : nn::adapted_layers(module))
        if (!adapted.layer->lora()->merged())
            throw ValueError(
                fmt::format("save_pretrained: expected merged adapters (nn::merge_lora), or none; that "
                            "of '{}' is not. io::save_lora writes only adapters",
                            adapted.name));
    const NoGrad no_grad;
    StateDict out;
    std::set<const void*> saved;
    for (const auto& [name, tensor] : without_adapters(module)) {
        if (!saved.insert(state_key(tensor)).second) continue;
        out.push_back({name, layout.is_transposed(name) ? transposed(tensor) : tensor});
    }
    io::save_sharded(folder, out, {.max_shard_size = max_shard_size});
}

std::map<std::string, std::string> saved_fields(const nn::Module& module, std::map<std::string, std::string> fields,
                                                std::string_view architecture) {
    fields["architectures"] = fmt::format("[\"{}\"]", architecture);
    const auto type_of = [](DType dtype) {
        return dtype == DType::f16    ? "\"float16\""
               : dtype == DType::bf16 ? "\"bfloat16\""
               : dtype == DType::f64  ? "\"float64\""
                                      : "\"float32\"";
    };
    for (const char* key : {"torch_dtype", "dtype"})
        if (const auto field = fields.find(key); field != fields.end())
            field->second = type_of(module.named_parameters().at(0).tensor.dtype());
    return fields;
}

}  // namespace declivity::models
