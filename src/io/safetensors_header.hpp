// Layer 6, private. The JSON header of a safetensors file.
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

/// Header entry of one array, each field already checked.
struct SafetensorsEntry {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::uint64_t begin = 0;  ///< within the data
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  ///< of its entry in the file, for errors
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> entries;
    std::map<std::string, std::string> metadata;
};

/// Bytes before the header: its length.
inline constexpr std::uint64_t kSafetensorsLengthBytes = 8;
inline constexpr const char* kSafetensorsMetadata = "__metadata__";
inline constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;  // limit of the reference implementation

/// @param json the bytes of the header, at kSafetensorsLengthBytes in the file
/// @throws FormatError
SafetensorsHeader parse_safetensors_header(const std::string& file, std::string_view json);

/// Reads up to the beginning of the data. The entries are sorted by offset, without gap or overlap up to the end of the
/// file.
/// @throws FormatError, IoError
SafetensorsHeader read_safetensors_header(InputFile& file);
/// @throws FormatError for an array at byte `begin` of a file whose bytes are not valid values of its type
void check_safetensors_array(const std::string& file, std::uint64_t begin, const std::string& name,
                             const HostArray& array);
/// Reads the array at the current position of the file. @throws FormatError, IoError
HostArray read_safetensors_array(InputFile& file, const SafetensorsEntry& entry);

/// The format's name of a type.
std::string_view safetensors_name(DType type) noexcept;

}  // namespace declivity::io
