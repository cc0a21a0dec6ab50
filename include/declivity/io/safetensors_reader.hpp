// Layer 6. Large safetensors files: arrays read on demand, from one file or several shards; sharded writing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>
#include <declivity/tensor/state_dict.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

class InputFile;

/// The arrays of a safetensors file, or of the shards of an index in Hugging Face's format
/// (model.safetensors.index.json): headers are read at once, arrays on demand. The files stay open as long as the
/// reader or a copy of it exists: if save() replaces one in the meantime, the old contents are read. Thread-safe.
class DECLIVITY_API SafetensorsReader {
  public:
    struct Array {
        DType dtype;
        Shape shape;
        std::filesystem::path file;
        std::uint64_t begin = 0;  ///< of its bytes in the file
    };

    /// @param path a safetensors file; an index, whose name ends in ".json"; or a folder with model.safetensors or
    /// model.safetensors.index.json
    /// @throws FormatError naming file and position for an invalid header or index, an index that refers to a file
    /// outside of its folder, or an array missing from its file; IoError
    explicit SafetensorsReader(const std::filesystem::path& path);

    [[nodiscard]] const std::map<std::string, Array>& arrays() const noexcept { return arrays_; }
    /// String metadata of the file; for an index, the strings and numbers of its "metadata".
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
    /// @throws ValueError for an unknown name; FormatError naming the file if it was modified in place since it was
    /// opened; OutOfMemory, IoError
    [[nodiscard]] HostArray read(const std::string& name) const;

  private:
    using Files = std::map<std::filesystem::path, std::shared_ptr<const InputFile>>;
    void read_index(const std::filesystem::path& path);

    Files files_;
    std::map<std::string, Array> arrays_;
    std::map<std::string, std::string> metadata_;
};

struct ShardOptions {
    std::string name = "model";                    ///< file name stem, before ".safetensors"
    std::uint64_t max_shard_size = 5'000'000'000;  ///< maximum bytes per file; a larger array gets its own file
    std::map<std::string, std::string> metadata = {{"format", "pt"}};  ///< string metadata of each file
};

/// Writes a state dict to a folder, which is created if missing: to NAME.safetensors or, if it is larger than
/// max_shard_size, to NAME-00001-of-0000N.safetensors ... and NAME.safetensors.index.json, in the order of the state
/// dict. Each file is written atomically, the index last; then existing files of the other form and surplus shards of
/// these names are removed. Elements are copied from the device one file at a time.
/// @return the files, without the index
/// @throws ValueError for a duplicate name or an undefined tensor; IoError
DECLIVITY_API std::vector<std::filesystem::path> save_sharded(const std::filesystem::path& folder,
                                                              const StateDict& state, const ShardOptions& options = {});

struct LoadOptions {
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    std::optional<DType> dtype = std::nullopt;    ///< type to which floating arrays are converted; unchanged if none
};
/// Loads what SafetensorsReader reads to a device, one array at a time.
/// @throws FormatError, IoError, OutOfMemory
DECLIVITY_API StateDict load_sharded(const std::filesystem::path& path, const LoadOptions& options = {});

/// @}

}  // namespace declivity::io
