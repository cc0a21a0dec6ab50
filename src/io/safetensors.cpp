#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checksum.hpp"
#include "safetensors_header.hpp"

namespace declivity::io {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and copied as it is");

constexpr std::size_t kAlignment = 8;  // of the data within the file

/// Written as text: inserting into an object that preserves order would search all names each time.
std::string header_of(const Safetensors& content, const std::vector<const std::string*>& order) {
    std::vector<std::string> members;
    if (!content.metadata.empty())
        members.push_back(fmt::format("\"{}\":{}", kSafetensorsMetadata, nlohmann::json(content.metadata).dump()));
    std::uint64_t offset = 0;
    for (const std::string* name : order) {
        const HostArray& array = content.arrays.at(*name);
        const std::uint64_t end = offset + array.bytes.size();
        members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                      nlohmann::json(*name).dump(), safetensors_name(array.dtype),
                                      fmt::join(array.shape.span(), ","), offset, end));
        offset = end;
    }
    return fmt::format("{{{}}}", fmt::join(members, ","));
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
    const FunctionScope function("io::read_safetensors");
    InputFile file(path);
    SafetensorsHeader header = read_safetensors_header(file);
    Safetensors content;
    content.metadata = std::move(header.metadata);
    for (const SafetensorsEntry& entry : header.entries)
        content.arrays.emplace(entry.name, read_safetensors_array(file, entry));
    require_checksum(file.name(), content);
    return content;
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& content) {
    const FunctionScope function("io::write_safetensors");
    std::vector<const std::string*> order;
    for (const auto& [name, array] : content.arrays) {
        if (name == kSafetensorsMetadata)
            throw ValueError(
                fmt::format("write_safetensors: the name '{}' is reserved by the format", kSafetensorsMetadata));
        array.check("write_safetensors");
        order.push_back(&name);
    }
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](const std::string* name) { return size_of(content.arrays.at(*name).dtype); });
    std::string json;
    try {
        json = header_of(content, order);
    } catch (const nlohmann::json::type_error& error) {
        throw ValueError(fmt::format("write_safetensors: expected names and metadata in UTF-8: {}", error.what()));
    }
    json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    if (json.size() > kSafetensorsMaxHeaderBytes)
        throw ValueError(fmt::format("write_safetensors: expected a header of at most {} bytes, got {}",
                                     kSafetensorsMaxHeaderBytes, json.size()));
    std::array<std::byte, kSafetensorsLengthBytes> length{};
    for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(json.size() >> (8 * i));

    AtomicFile file(path);
    file.write(length);
    file.write(std::as_bytes(std::span(json)));
    for (const std::string* name : order) file.write(content.arrays.at(*name).bytes);
    file.commit();
}

}  // namespace declivity::io
