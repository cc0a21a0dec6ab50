#include <declivity/io/safetensors_reader.hpp>

#include <algorithm>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "json_file.hpp"
#include "safetensors_header.hpp"

namespace declivity::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".safetensors";
constexpr const char* kIndexSuffix = ".safetensors.index.json";
constexpr const char* kWeightMap = "weight_map";

fs::path resolve_path(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) return path;
    const fs::path single_file = path / fmt::format("model{}", kSuffix),
                   index = path / fmt::format("model{}", kIndexSuffix);
    return !fs::exists(single_file, ignored) && fs::exists(index, ignored) ? index : single_file;
}

/// Arrays of one file, and its metadata.
std::map<std::string, SafetensorsReader::Array> arrays_of(const fs::path& path,
                                                          std::map<std::string, std::string>& metadata,
                                                          std::map<fs::path, std::shared_ptr<const InputFile>>& files) {
    auto opened = std::make_shared<InputFile>(path);
    InputFile& file = *opened;
    files.emplace(path, opened);
    SafetensorsHeader header = read_safetensors_header(file);
    metadata = std::move(header.metadata);
    std::map<std::string, SafetensorsReader::Array> out;
    for (SafetensorsEntry& entry : header.entries)
        out.emplace(std::move(entry.name),
                    SafetensorsReader::Array{entry.dtype, entry.shape, path, file.position() + entry.begin});
    return out;
}

/// Path of a file within the folder of the index.
bool is_plain_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

}  // namespace

void SafetensorsReader::read_index(const fs::path& path) {
    const JsonFile index(path);
    const auto map = index.root().find(kWeightMap);
    if (map == index.root().end() || !map->is_object())
        index.fail(kWeightMap, fmt::format("expected an object '{}' with the file of each array", kWeightMap));
    if (const auto entry = index.root().find("metadata"); entry != index.root().end() && entry->is_object()) {
        for (const auto& [key, value] : entry->items()) {
            if (value.is_string()) metadata_[key] = value.get<std::string>();
            if (value.is_number()) metadata_[key] = value.dump();
        }
    }
    std::map<std::string, std::map<std::string, Array>> files;
    for (const auto& [name, file_name] : map->items()) {
        if (!file_name.is_string())
            index.fail(name,
                       fmt::format("array '{}' expected the name of a file, got {}", name, file_name.type_name()));
        const auto file = file_name.get<std::string>();
        if (!is_plain_name(file))
            index.fail(name,
                       fmt::format("array '{}' expected a file in the folder of the index, got '{}'", name, file));
        auto file_arrays = files.find(file);
        if (file_arrays == files.end()) {
            std::map<std::string, std::string> ignored;
            file_arrays = files.emplace(file, arrays_of(path.parent_path() / file, ignored, files_)).first;
        }
        const auto array = file_arrays->second.find(name);
        if (array == file_arrays->second.end())
            index.fail(name, fmt::format("array '{}' is not in the file '{}'", name, file));
        arrays_.emplace(name, array->second);
    }
}

SafetensorsReader::SafetensorsReader(const fs::path& path) {
    const FunctionScope function("io::SafetensorsReader");
    const fs::path file = resolve_path(path);
    if (file.extension() == ".json") read_index(file);
    else arrays_ = arrays_of(file, metadata_, files_);
}

HostArray SafetensorsReader::read(const std::string& name) const {
    const FunctionScope function("io::SafetensorsReader::read");
    const auto found = arrays_.find(name);
    if (found == arrays_.end())
        throw ValueError(fmt::format("SafetensorsReader::read: expected the name of an array, got '{}'", name));
    const Array& array = found->second;
    const InputFile& file = *files_.at(array.file);
    HostArray out{array.dtype, array.shape, file.read_at(array.begin, ops::bytes_of(array.shape, array.dtype))};
    check_safetensors_array(file.name(), array.begin, name, out);
    return out;
}

namespace {

/// Returns whether a file name is that of a shard of `name`: NAME-00001-of-00003.safetensors.
bool is_shard_of(const std::string& name, std::string file) {
    if (!file.starts_with(name)) return false;
    file.erase(0, name.size());
    for (char& letter : file)
        if (letter >= '0' && letter <= '9') letter = '0';
    return file == std::string("-00000-of-00000") + kSuffix;
}

}  // namespace

std::vector<fs::path> save_sharded(const fs::path& folder, const StateDict& state, const ShardOptions& options) {
    const FunctionScope function("io::save_sharded");
    std::vector<StateDict> shards(1);
    std::set<std::string> names;
    std::uint64_t filled = 0, total = 0;
    for (const NamedTensor& item : state) {
        if (!item.tensor.defined())
            throw ValueError(
                fmt::format("io::save_sharded: expected a tensor as '{}', got an undefined one", item.name));
        if (!names.insert(item.name).second)
            throw ValueError(fmt::format("io::save_sharded: expected each name once, got '{}' again", item.name));
        const std::uint64_t bytes = ops::bytes_of(item.tensor.shape(), item.tensor.dtype());
        if (filled > 0 && bytes > options.max_shard_size - std::min(filled, options.max_shard_size)) {
            shards.emplace_back();
            filled = 0;
        }
        shards.back().push_back(item);
        filled += bytes;
        total += bytes;
    }
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw IoError("create the folder", folder.string(), error.value());
    const auto remove = [&](const fs::path& path) {
        fs::remove(path, error);
        if (error) throw IoError("remove", path.string(), error.value());
    };
    // Removes shards of an earlier state, which the index no longer names.
    const auto remove_shards_but = [&](const std::vector<fs::path>& files) {
        std::vector<fs::path> obsolete;
        for (fs::directory_iterator entry(folder, error); !error && entry != fs::end(entry); entry.increment(error))
            if (is_shard_of(options.name, entry->path().filename().string()) &&
                std::ranges::find(files, entry->path()) == files.end())
                obsolete.push_back(entry->path());
        if (error) throw IoError("read the folder", folder.string(), error.value());
        for (const fs::path& shard_path : obsolete) remove(shard_path);
    };
    const fs::path single_file = folder / (options.name + kSuffix), index = folder / (options.name + kIndexSuffix);
    if (shards.size() == 1) {
        save(single_file, shards[0], options.metadata);
        remove(index);
        remove_shards_but({});
        return {single_file};
    }
    nlohmann::json map = nlohmann::json::object();
    std::vector<fs::path> files;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const std::string name = fmt::format("{}-{:05}-of-{:05}{}", options.name, i + 1, shards.size(), kSuffix);
        files.push_back(folder / name);
        save(files.back(), shards[i], options.metadata);
        for (const NamedTensor& shard : shards[i]) map[shard.name] = name;
    }
    const nlohmann::json content{{"metadata", {{"total_size", total}}}, {kWeightMap, std::move(map)}};
    const std::string text = detail::dump_json("io::save_sharded", content, 2) + "\n";
    write_file(index, std::as_bytes(std::span(text)));
    remove(single_file);
    remove_shards_but(files);
    return files;
}

StateDict load_sharded(const fs::path& path, const LoadOptions& options) {
    const FunctionScope function("io::load_sharded");
    const SafetensorsReader reader(path);
    StateDict out;
    for (const auto& [name, array] : reader.arrays()) {
        Tensor tensor = to_device(reader.read(name), options.device);
        if (options.dtype && is_floating(array.dtype) && array.dtype != *options.dtype) {
            tensor = tensor.to(*options.dtype);
            (void)tensor.view();  // releases the elements as they were read
        }
        out.push_back({name, std::move(tensor)});
    }
    return out;
}

}  // namespace declivity::io
