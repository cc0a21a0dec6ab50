// Layer 4, private. A checksum of what a safetensors file holds.
#pragma once

#include <string>

#include <declivity/io/safetensors.hpp>

namespace declivity::io {

/// The key of the metadata under which a file has it.
inline constexpr const char* kChecksumKey = "declivity.crc32";

/// CRC-32 of names, types, shapes and elements of all arrays, and of all metadata but the checksum itself, as 8
/// hexadecimal digits.
std::string checksum_of(const Safetensors& content);

/// @throws FormatError naming the file where its metadata has a checksum that is another than that of its content
void require_checksum(const std::string& file, const Safetensors& content);

}  // namespace declivity::io
