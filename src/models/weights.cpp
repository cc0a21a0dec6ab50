#include "weights.hpp"

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
std::string old_name(const std::string& name) {
    for (const auto& [now, then] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, std::pair{"LayerNorm.bias", "LayerNorm.beta"}})
        if (name.ends_with(now)) return name.substr(0, name.size() - std::string_view(now).size()) + then;
    return name;
}

std::optional<std::string> name_in(const io::SafetensorsReader& reader, const std::string& name,
                                   std::string_view prefix) {
    std::vector<std::string> candidates{name, std::string(prefix) + name};
    if (name.starts_with(prefix)) candidates[1] = name.substr(prefix.size());
    for (const std::string& one : candidates)
        for (const std::string& spelled : {one, old_name(one)})
            if (reader.arrays().contains(spelled)) return spelled;
    return std::nullopt;
}

Tensor turned(const Tensor& x) { return x.rank() == 2 ? transpose(x) : x; }

const void* same(const Tensor& tensor) { return tensor.state().get(); }

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
    for (const nn::AdaptedLinear& one : nn::adapted_layers(module))
        for (const NamedTensor& tensor : one.layer->lora()->state_dict()) adapters.insert(same(tensor.tensor));
    StateDict state = module.state_dict();
    std::erase_if(state, [&](const NamedTensor& item) { return adapters.contains(same(item.tensor)); });
    return state;
}

}  // namespace

void check_files(const char* function, const std::filesystem::path& folder, const FileLayout& layout, bool strict,
                 const ParameterList& parameters) {
    const io::SafetensorsReader reader(folder);
    constexpr std::size_t kNamed = 8;                  // missing parameters listed in an error
    constexpr std::size_t kMissing = 100'000;          // parameters that a model to be trained may lack
    constexpr double kElements = 256.0 * 1024 * 1024;  // elements that it may lack beyond those in the files
    std::vector<std::string> missing;
    double lacking = 0, having = 0;
    for (const auto& [name, array] : reader.arrays()) having += elements_of(array.shape);
    const auto refuse_missing = [&](const char* more) {
        throw ValueError(fmt::format("{}: expected {}{} in the files in '{}', as config.json says", function,
                                     fmt::join(std::span(missing).first(std::min(kNamed, missing.size())), ", "), more,
                                     folder.string()));
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
        lacking += elements_of(shape);
        if (strict && missing.size() > kNamed) refuse_missing(" and more");
        if (missing.size() > kMissing || lacking > having + kElements) refuse_missing(" and more");
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
    LoadedState found;
    std::set<std::string> used;
    const StateDict state = without_adapters(module);
    for (const auto& [name, tensor] : state)
        if (const auto in_file = name_in(reader, name, layout.prefix)) {
            matches.push_back({name, *in_file, tensor});
            filled.push_back(same(tensor));
            used.insert(*in_file);
        }
    for (const auto& [name, tensor] : state)
        // A tied parameter has its values under its other name.
        if (std::ranges::find(filled, same(tensor)) == filled.end()) found.missing.push_back(name);
    for (const auto& [name, array] : reader.arrays())
        if (!used.contains(name)) found.unexpected.push_back(name);
    if (strict && !found.missing.empty())
        throw ValueError(fmt::format("{}: expected {} in the files in '{}'", function, fmt::join(found.missing, ", "),
                                     path.string()));
    for (const Match& match : matches)
        require_shape(function, reader, match.in_file, in_file_shape(layout, match.name, match.to.shape()), "");
    const NoGrad no_grad;
    const auto read = [&](const Match& match) {
        Tensor from = io::to_device(reader.read(match.in_file), match.to.device());
        if (layout.is_transposed(match.name)) from = turned(from);
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
    return found;
}

void save_weights(const nn::Module& module, const std::filesystem::path& folder, const FileLayout& layout,
                  std::uint64_t max_shard_size) {
    for (const nn::AdaptedLinear& one : nn::adapted_layers(module))
        if (!one.layer->lora()->merged())
            throw ValueError(
                fmt::format("save_pretrained: expected merged adapters (nn::merge_lora), or none; that "
                            "of '{}' is not. io::save_lora writes only adapters",
                            one.name));
    const NoGrad no_grad;
    StateDict out;
    std::set<const void*> written;
    for (const auto& [name, tensor] : without_adapters(module)) {
        if (!written.insert(same(tensor)).second) continue;
        out.push_back({name, layout.is_transposed(name) ? turned(tensor) : tensor});
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
        if (const auto said = fields.find(key); said != fields.end())
            said->second = type_of(module.named_parameters().at(0).tensor.dtype());
    return fields;
}

}  // namespace declivity::models
