// Floor 5, private. Parameters to and from the files that transformers reads and writes.
#pragma once

#include <cstdint>
#include <filesystem>
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

/// Reads one array after the other into the parameters. Nothing is changed where names or shapes do not fit.
/// @return what the files lack, and have beside
/// @throws ValueError naming what is missing, if strict; ShapeError, FormatError, IoError
LoadedState load_weights(const char* function, nn::Module& module, const std::filesystem::path& path,
                         const FileLayout& layout, bool strict);

/// Writes the parameters, each once.
void save_weights(const nn::Module& module, const std::filesystem::path& folder, const FileLayout& layout,
                  std::uint64_t max_shard_size);

}  // namespace declivity::models
