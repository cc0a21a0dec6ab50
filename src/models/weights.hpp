// Layer 5, private. Parameters to and from the files that transformers reads and writes.
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

/// How names and layouts in files may differ from those of a module.
struct FileLayout {
    /// That of the model without its head, with a dot: files of the one have it in front of names, those of the other
    /// have not.
    std::string_view prefix;
    /// Which parameters lie transposed in files.
    bool (*is_transposed)(std::string_view name) = [](std::string_view) { return false; };
};

/// A parameter that a model of a config has: its names, of which a file has one at least, and its shape.
using VisitParameter = std::function<void(std::initializer_list<std::string> names, const Shape& shape)>;
/// Calls visit for one parameter after the other. What it throws ends the list, which may claim to be endless.
using ParameterList = std::function<void(const VisitParameter& visit)>;

/// Compares what a config claims with the headers of the files alone, before anything of that size is made.
/// @throws ValueError naming what is missing (if strict, or where the files lack far more than they have); ShapeError;
/// FormatError, IoError
void check_files(const char* function, const std::filesystem::path& folder, const FileLayout& layout, bool strict,
                 const ParameterList& parameters);

/// Whether a module that keeps half of its new values is of use to none: it is dropped where reading fails.
enum class Reading : std::uint8_t {
    all_or_nothing,  ///< all arrays are read before the first parameter is written: twice the memory meanwhile
    in_place,        ///< one array after the other
};

/// Reads the parameters, adapters (nn::Lora) apart. With all_or_nothing nothing is changed by a call that throws.
/// @return what the files lack, and have beside
/// @throws ValueError naming what is missing, if strict; ShapeError, FormatError, IoError
LoadedState load_weights(const char* function, nn::Module& module, const std::filesystem::path& path,
                         const FileLayout& layout, bool strict, Reading reading = Reading::all_or_nothing);

/// Writes the parameters, each once, adapters apart.
/// @throws ValueError where an adapter is not merged
void save_weights(const nn::Module& module, const std::filesystem::path& folder, const FileLayout& layout,
                  std::uint64_t max_shard_size);

/// The fields of a config beside those that members stand for, for a model that is saved: the name of its class, and
/// the type of its parameters where the config said one.
std::map<std::string, std::string> saved_fields(const nn::Module& module, std::map<std::string, std::string> fields,
                                                std::string_view architecture);

/// The names of a linear layer, or of a normalisation.
inline void visit_layer(const VisitParameter& visit, const std::string& name, const Shape& weight, bool bias = true) {
    visit({name + ".weight"}, weight);
    if (bias) visit({name + ".bias"}, {weight[0]});
}

/// The steps of from_pretrained() that all models share.
/// @param make a model of no more than the files have
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
