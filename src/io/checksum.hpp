// Layer 4, private. Checksums of what files hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <declivity/io/safetensors.hpp>

namespace declivity::io {

/// The key of the metadata under which a file has it.
inline constexpr const char* kChecksumKey = "declivity.crc32";

/// CRC-32 of names, types, shapes and elements of all arrays, and of all metadata but the checksum itself, as 8
/// hexadecimal digits.
std::string checksum_of(const Safetensors& content);

/// CRC-32, as zlib has it.
std::uint32_t crc32_of(std::span<const std::byte> bytes);

/// @throws FormatError naming the file where its metadata has a checksum that is another than that of its content
void require_checksum(const std::string& file, const Safetensors& content);

}  // namespace declivity::io
