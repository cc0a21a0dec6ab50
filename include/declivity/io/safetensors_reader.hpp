// Layer 4. Safetensors of any size: read one array at a time, from one file or from several, and written as several.
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

class InputFile;

/// The arrays of a safetensors file, or of the several files that an index names, as Hugging Face's tools write them
/// (model.safetensors.index.json): headers are read at once, arrays when they are asked for. The files stay open as
/// long as the reader or a copy of it exists: a file that save() replaces meanwhile is read as it was. Several threads
/// may read from one reader.
class DECLIVITY_API SafetensorsReader {
  public:
    struct Array {
        DType dtype;
        Shape shape;
        std::filesystem::path file;
        std::uint64_t begin = 0;  ///< of its bytes within the file
    };

    /// @param path a safetensors file; an index, whose name ends in ".json"; or a folder with model.safetensors or
    /// model.safetensors.index.json
    /// @throws FormatError naming file and place for a header or an index that is not valid, for an index that names a
    /// file outside of its folder, or an array that its file does not have; IoError
    explicit SafetensorsReader(const std::filesystem::path& path);

    [[nodiscard]] const std::map<std::string, Array>& arrays() const noexcept { return arrays_; }
    /// The texts of the file's header; of an index what its "metadata" says in texts and numbers.
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
    /// @throws ValueError for a name that there is not; FormatError naming the file where it was changed in place since
    /// it was opened; OutOfMemory, IoError
    [[nodiscard]] HostArray read(const std::string& name) const;

  private:
    using Files = std::map<std::filesystem::path, std::shared_ptr<const InputFile>>;
    void read_index(const std::filesystem::path& path);

    Files files_;
    std::map<std::string, Array> arrays_;
    std::map<std::string, std::string> metadata_;
};

struct ShardOptions {
    std::string name = "model";                    ///< of the files, before ".safetensors"
    std::uint64_t max_shard_size = 5'000'000'000;  ///< bytes of arrays in a file; one that is larger is alone
    std::map<std::string, std::string> metadata = {{"format", "pt"}};  ///< of each file
};

/// Writes a state to a folder, which is made where it is missing: to NAME.safetensors, or, where it is larger than
/// max_shard_size, to NAME-00001-of-0000N.safetensors ... and NAME.safetensors.index.json, in the order of the state.
/// Each file is written whole or not at all, the index last; files of the other form and further shards that lay there
/// under these names are removed then. Elements are copied from the device one file at a time.
/// @return the files, without the index
/// @throws ValueError for a name that comes twice or an undefined tensor; IoError
DECLIVITY_API std::vector<std::filesystem::path> save_sharded(const std::filesystem::path& folder,
                                                              const StateDict& state, const ShardOptions& options = {});

struct LoadOptions {
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
    std::optional<DType> dtype = std::nullopt;    ///< that floating arrays are converted to; as they are if none
};
/// Reads what SafetensorsReader reads to a device, one array after the other.
/// @throws FormatError, IoError, OutOfMemory
DECLIVITY_API StateDict load_sharded(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace declivity::io
