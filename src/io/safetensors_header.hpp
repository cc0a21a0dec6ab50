// Layer 4, private. The JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/io/host_array.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::io {

/// One array as the header tells of it, its parts already checked by themselves.
struct SafetensorsEntry {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::uint64_t begin = 0;  ///< within the data
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  ///< of its description in the file, for errors
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> entries;
    std::map<std::string, std::string> metadata;
};

/// Bytes before the header: its length.
inline constexpr std::uint64_t kSafetensorsLengthBytes = 8;
inline constexpr const char* kSafetensorsMetadata = "__metadata__";
inline constexpr std::uint64_t kSafetensorsLongestHeader = 100'000'000;  // the reference's limit

/// @param json the header's bytes, which stand at kSafetensorsLengthBytes in the file
/// @throws FormatError
SafetensorsHeader parse_safetensors_header(const std::string& file, std::string_view json);

/// Reads up to where the data begins. The entries are sorted as they lie, without gap or overlap up to the file's end.
/// @throws FormatError, IoError
SafetensorsHeader read_safetensors_header(InputFile& file);
/// @throws FormatError for an array at byte `begin` of a file whose bytes are not values of its type
void check_safetensors_array(const std::string& file, std::uint64_t begin, const std::string& name,
                             const HostArray& array);
/// Reads the array that begins where the file stands. @throws FormatError, IoError
HostArray read_safetensors_array(InputFile& file, const SafetensorsEntry& entry);

/// The format's name of a type.
std::string_view safetensors_name(DType type) noexcept;

}  // namespace declivity::io
