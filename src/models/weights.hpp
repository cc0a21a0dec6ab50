// Layer 7, private. Loading and saving of parameters in the file format of transformers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include <declivity/nn/module.hpp>

namespace declivity::models {

/// Differences of names and layouts between files and a module.
struct FileLayout {
    /// Prefix, with a dot, of the model without its head: present in the names of files with a head, absent in files
    /// without one.
    std::string_view prefix;
    /// Returns whether a parameter is stored transposed in files.
    bool (*is_transposed)(std::string_view name) = [](std::string_view) { return false; };
};

/// Callback for an expected parameter: its names, of which a file has at least one, and its shape.
using VisitParameter = std::function<void(std::initializer_list<std::string> names, const Shape& shape)>;
/// Calls visit for one parameter after the other. An exception from it ends the list, whose claimed length is
/// unchecked.
using ParameterList = std::function<void(const VisitParameter& visit)>;

/// Compares the sizes that a config claims with the headers of the files, before anything of that size is allocated.
/// @throws ValueError naming what is missing (if strict, or if the files lack far more than they have); ShapeError;
/// FormatError, IoError
void check_files(const char* function, const std::filesystem::path& folder, const FileLayout& layout, bool strict,
                 const ParameterList& parameters);

/// Atomicity of loading: whether a partly loaded module may remain, or is discarded on failure.
enum class Reading : std::uint8_t {
    all_or_nothing,  ///< all arrays are read before the first parameter is written: twice the memory temporarily
    in_place,        ///< one array after the other
};

/// Loads the parameters, except those of adapters (nn::Lora). With all_or_nothing a call that throws changes nothing.
/// @return missing and unexpected names of the files
/// @throws ValueError naming what is missing, if strict; ShapeError, FormatError, IoError
LoadedState load_weights(const char* function, nn::Module& module, const std::filesystem::path& path,
                         const FileLayout& layout, bool strict, Reading reading = Reading::all_or_nothing);

/// Saves the parameters, each once, except those of adapters.
/// @throws ValueError if an adapter is not merged
void save_weights(const nn::Module& module, const std::filesystem::path& folder, const FileLayout& layout,
                  std::uint64_t max_shard_size);

/// Fields without a member for a saved config: the model's class name, and the type of its parameters if the config had
/// one.
std::map<std::string, std::string> saved_fields(const nn::Module& module, std::map<std::string, std::string> fields,
                                                std::string_view architecture);

/// Visits the parameters of a linear or normalisation layer.
inline void visit_layer(const VisitParameter& visit, const std::string& name, const Shape& weight, bool bias = true) {
    visit({name + ".weight"}, weight);
    if (bias) visit({name + ".bias"}, {weight[0]});
}

/// Steps of from_pretrained() that all models share.
/// @param make creates a model no larger than the files
template <class Model, class Make>
Model read_pretrained(const char* function, const std::filesystem::path& folder, const FileLayout& layout, bool strict,
                      const ParameterList& parameters, const Make& make) {
    check_files(function, folder, layout, strict, parameters);
    Model model = make();
    (void)load_weights(function, model, folder, layout, strict, Reading::in_place);
    model.eval();
    return model;
}

}  // namespace declivity::models
