#include "weights.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <declivity/io/safetensors_reader.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/lora.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/functions.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::models {
namespace {

/// As files of models that came from TensorFlow name normalisation.
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

}  // namespace

LoadedState load_weights(const char* function, nn::Module& module, const std::filesystem::path& path,
                         const FileLayout& layout, bool strict) {
    const io::SafetensorsReader reader(path);
    struct Match {
        std::string name, in_file;
        Tensor to;
    };
    std::vector<Match> matches;
    std::vector<const void*> filled;
    LoadedState found;
    std::set<std::string> used;
    const auto same = [](const Tensor& tensor) { return static_cast<const void*>(tensor.state().get()); };
    const StateDict state = module.state_dict();
    for (const auto& [name, tensor] : state)
        if (const auto in_file = name_in(reader, name, layout.prefix)) {
            matches.push_back({name, *in_file, tensor});
            filled.push_back(same(tensor));
            used.insert(*in_file);
        }
    for (const auto& [name, tensor] : state)
        // One that is tied has its values under its other name.
        if (std::ranges::find(filled, same(tensor)) == filled.end()) found.missing.push_back(name);
    for (const auto& [name, array] : reader.arrays())
        if (!used.contains(name)) found.unexpected.push_back(name);
    if (strict && !found.missing.empty())
        throw ValueError(
            fmt::format("{}: the files in '{}' lack {}", function, path.string(), fmt::join(found.missing, ", ")));
    for (const Match& match : matches) {
        Shape wanted = match.to.shape();
        if (layout.is_transposed(match.name) && wanted.rank() == 2) std::swap(wanted[0], wanted[1]);
        if (const Shape& got = reader.arrays().at(match.in_file).shape; got != wanted)
            throw ShapeError(
                fmt::format("{}: wants '{}' {}, got {}", function, match.in_file, wanted.str(), got.str()));
    }
    const NoGrad no_grad;
    for (const Match& match : matches) {
        Tensor from = io::to_device(reader.read(match.in_file), match.to.device());
        if (layout.is_transposed(match.name)) from = turned(from);
        Tensor to = match.to;
        to.copy_(from.to(to.dtype()));
        // No more than one array waits, so that memory is taken for one alone.
        (void)to.view();
    }
    return found;
}

void save_weights(const nn::Module& module, const std::filesystem::path& folder, const FileLayout& layout,
                  std::uint64_t max_shard_size) {
    for (const nn::AdaptedLinear& one : nn::adapted_layers(module))
        if (!one.layer->lora()->merged())
            throw ValueError(
                fmt::format("save_pretrained: wants adapters that are merged (nn::merge_lora), or none; that "
                            "of '{}' is not. io::save_lora writes adapters alone",
                            one.name));
    const NoGrad no_grad;
    StateDict out;
    std::set<const void*> written;
    for (const auto& [name, tensor] : module.state_dict()) {
        if (!written.insert(tensor.state().get()).second) continue;
        out.push_back({name, layout.is_transposed(name) ? turned(tensor) : tensor});
    }
    io::save_sharded(folder, out, {.max_shard_size = max_shard_size});
}

}  // namespace declivity::models
